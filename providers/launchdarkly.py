"""LaunchDarkly signs the body with HMAC-SHA256, in hex, in `X-LD-Signature`.

The id is `$._id`, the audit log entry's; the type is the kind of resource and the verb, `flag.turned on the
flag`, as LaunchDarkly words it. One retry.

https://docs.launchdarkly.com/integrations/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-ld-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$._id"), body_digest()),
    type=first(join(field("$.kind"), field("$.titleVerb"), by="."), field("$.kind"), fixed("unknown")),
    account=field("$._accountId"),
    occurred_at=field("$.date"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$._id"),
    check_secret=scheme.check_secret,
    setup_url="https://app.launchdarkly.com/settings/integrations",
)
