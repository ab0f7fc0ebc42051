"""Lob signs `<time>.<body>` with HMAC-SHA256, in hex, in `Lob-Signature`.

The time is signed as it stands in `Lob-Signature-Timestamp`, and not checked: Lob does not say its unit, nor
whether an old one is sent again. The id is `$.id`, the type `$.event_type.id`. Ten retries in two days.

https://docs.lob.com/#tag/Webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"), type=kit.or_unknown("$.event_type.id"), occurred_at="$.date_created"
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="lob-signature",
        signed="{timestamp}.{body}",
        timestamp=kit.Timestamp(header="lob-signature-timestamp", unit="any", tolerance=None),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://dashboard.lob.com/webhooks",
)
