"""Checkout.com signs the body with HMAC-SHA256, in hex, in `Cko-Signature`.

The key is the workflow's signature key; on the older platform it may be the account's secret key. An
`Authorization` header with a fixed value may be set besides, and is never looked at. The id is `$.id`
(`evt_…`). There are eight retries within 30 hours.

https://www.checkout.com/docs/developer-resources/webhooks/set-up-your-webhook-receiver
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.type"),
    account=kit.first("$.data.processing_channel_id", "$.data.entity_id"),
    occurred_at=kit.first("$.created_on", "$.timestamp"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="cko-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://dashboard.checkout.com/developers/webhooks",
)
