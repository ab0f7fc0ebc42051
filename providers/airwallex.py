"""Airwallex signs `<x-timestamp><body>`, with nothing between, with HMAC-SHA256 in hex.

The time is in milliseconds and may be five minutes off, as others who verify it have it: the package `airwallex` on
PyPI, which is not the vendor's. The id is `$.id`, the type `$.name`. Each notification URL has its own secret. Retries
go on for three days.

https://www.airwallex.com/docs/developer-tools/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.name"),
    account=kit.first("$.account_id", "$.accountId"),
    occurred_at=kit.first("$.created_at", "$.createdAt"),
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-signature",
        signed="{timestamp}{body}",
        timestamp=kit.Timestamp(header="x-timestamp", unit="ms"),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://www.airwallex.com/app/developer/webhooks",
)
