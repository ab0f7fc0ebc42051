"""Lob signs `<time>.<body>` with HMAC-SHA256, in hex, in `Lob-Signature`.

The time is signed as it stands in `Lob-Signature-Timestamp`, and not checked: Lob does not say its unit, nor
whether an old one is sent again. The id is `$.id`, the type `$.event_type.id`. Ten retries in two days.

https://docs.lob.com/#tag/Webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="lob-signature",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(header="lob-signature-timestamp", unit="any", tolerance=None),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.event_type.id"), fixed("unknown")),
    occurred_at=field("$.date_created"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.lob.com/webhooks",
)
