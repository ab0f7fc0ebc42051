"""Mollie's next-generation webhooks sign the body with HMAC-SHA256, hex behind `sha256=`.

For 24 hours after a rotation the header is sent twice, once for each secret. The id is `$.id`, the event's.
Classic webhooks (a form `id=tr_…`) are not signed at all and not taken here. Ten tries in 26 hours, after which
the webhook is blocked.

https://docs.mollie.com/reference/webhooks-new
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="x-mollie-signature", prefix="sha256=", separator=",")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.organizationId"),
    occurred_at=field("$.createdAt"),
)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://my.mollie.com/dashboard/developers/webhooks"
