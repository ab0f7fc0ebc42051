"""Dub signs the body with HMAC-SHA256, in hex.

The id is `$.id`, the type `$.event`.

https://dub.co/docs/concepts/webhooks/introduction
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="dub-signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    occurred_at=field("$.createdAt"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://app.dub.co/settings/webhooks"
