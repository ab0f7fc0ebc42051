"""LaunchDarkly signs the body with HMAC-SHA256, in hex, in `X-LD-Signature`.

The id is `$._id`, the audit log entry's; the type is the kind of resource and the verb, `flag.turned on the
flag`, as LaunchDarkly words it. One retry.

https://docs.launchdarkly.com/integrations/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(header="x-ld-signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$._id"), body_digest()),
    type=first(joined(field("$.kind"), field("$.titleVerb"), by="."), field("$.kind"), fixed("unknown")),
    account=field("$._accountId"),
    occurred_at=field("$.date"),
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://app.launchdarkly.com/settings/integrations"
