"""Rootly signs `<t><body>` with HMAC-SHA256, in hex: `X-Rootly-Signature: t=…,v1=…`, without a dot in between.

The id is `$.event.id`, the type `$.event.type` (`incident.created`).

https://docs.rootly.com/configuration/webhooks
"""

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="x-rootly-signature", key="v1", signed="{timestamp}{body}", timestamp=Timestamp(key="t"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(field("$.event.id"), body_digest()),
    type=first(field("$.event.type"), fixed("unknown")),
    occurred_at=field("$.event.issued_at"),
)
SETUP = "https://rootly.com/account/webhooks"
