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

from hookonce.providers import kit

scheme = kit.Hmac(header=("sentry-hook-signature", "sentry-app-signature"))
sign = kit.signer(
    scheme.sign, event_id="request-id", type="sentry-hook-resource", default_type="installation"
)
_resource = kit.header("sentry-hook-resource")
events = kit.one_event(
    id=kit.or_body("header request-id"),
    type=kit.or_unknown(kit.join(_resource, "$.action", by="."), _resource),
    account="$.installation.uuid",
    occurred_at="header sentry-hook-timestamp",
    read=kit.any_body,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats=(
        "an issue that is resolved twice may bring one body; each attempt has another id, so hold them if handlers "
        "must not run twice"
    ),
    retry_horizon=kit.days(1),
    retries_on=kit.SERVER_ERRORS,
    disables_after="repeated failures",
    identity=kit.told_apart_by(
        "header request-id", "body", because="every event has the header; requests of UI components do not"
    ),
    setup_url="https://sentry.io/settings/developer-settings/",
)
