"""Coinbase Commerce signs the body with HMAC-SHA256, in hex.

The id is `$.event.id`; `$.id` is that of the delivery, and with `$.attempt_number` and `$.scheduled_for` it is
new for each attempt. Retries go on for three days.

https://docs.cdp.coinbase.com/commerce/docs/webhooks-security
"""

from hookonce.providers import kit

_VOLATILE = ("$.id", "$.attempt_number", "$.scheduled_for")
events = kit.one_event(
    id=kit.or_body("$.event.id", without=_VOLATILE),
    type=kit.or_unknown("$.event.type"),
    occurred_at="$.event.created_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-cc-webhook-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by("$.event.id"),
    volatile=_VOLATILE,
    subject=kit.about(entity=("$.event.data.id",), version="$.event.created_at"),
    setup_url="https://beta.commerce.coinbase.com/settings/notifications",
)
