"""Alchemy signs the body with HMAC-SHA256, in hex; the signing key (`whsec_…`) is used whole, as it is.

The id is `$.id` (whevt_…), the same on every attempt; the type is `$.type` (ADDRESS_ACTIVITY). One delivery holds all
that a block had for the webhook. Alchemy tries again for up to an hour.

https://www.alchemy.com/docs/reference/notify-api-quickstart
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"), type=kit.or_unknown("$.type"), account="$.webhookId", occurred_at="$.createdAt"
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-alchemy-signature"),
    id_is_signed=True,
    retry_horizon=kit.hours(2),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://dashboard.alchemy.com/webhooks",
)
