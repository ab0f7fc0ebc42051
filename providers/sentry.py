"""Sentry's integrations sign the body with HMAC-SHA256, in hex; the key is the client secret.

Requests of UI components are signed in `Sentry-App-Signature`. `Sentry-Hook-Timestamp` is not signed and not looked
at. The id is `Request-ID`, not signed either; without it the body is known by its fingerprint. Sentry makes a new
one for each of its up to four attempts (`app_platform_event.py`), which so are repeats (`repeats = "hold"`); by the
body alone an issue that is resolved twice would be one event. The type is the resource and the action,
`issue.created`, the account the installation. Sentry's own examples sign the JSON written anew, which fails for
anything but ASCII: it signs the raw body, which may be empty. It waits for a second, and switches off a webhook
that fails often.

https://docs.sentry.io/organization/integrations/integration-platform/webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, any_body, body_digest, field, first, fixed, header, joined, one_event, signer

scheme = Hmac(header=("sentry-hook-signature", "sentry-app-signature"))
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="request-id", type="sentry-hook-resource", default_type="installation")
_resource = header("sentry-hook-resource")
events = one_event(
    id=first(header("request-id"), body_digest()),
    type=first(joined(_resource, field("$.action"), by="."), _resource, fixed("unknown")),
    account=field("$.installation.uuid"),
    occurred_at=header("sentry-hook-timestamp"),
    read=any_body,
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://sentry.io/settings/developer-settings/"
