"""Lob signs `<time>.<body>` with HMAC-SHA256, in hex, in `Lob-Signature`.

The time is signed as it stands in `Lob-Signature-Timestamp`, and not checked: Lob does not say its unit, nor
whether an old one is sent again. The id is `$.id`, the type `$.event_type.id`. Ten retries in two days.

https://docs.lob.com/#tag/Webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(
    header="lob-signature",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(header="lob-signature-timestamp", unit="any", tolerance=None),
)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.event_type.id"), fixed("unknown")),
    occurred_at=field("$.date_created"),
)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://dashboard.lob.com/webhooks"
