"""Lemon Squeezy signs the body with HMAC-SHA256, in hex, in `X-Signature`.

What `$.meta.webhook_id` stands for is nowhere said, so the id is made of it, the event's name, the object's id
and when that was changed: the same on every retry, and never one for two changes. The type is the event's name,
the account the store. Three retries, after 5, 25 and 125 seconds.

https://docs.lemonsqueezy.com/help/webhooks/signing-requests
"""

from hookonce.providers import kit

_name = kit.first("$.meta.event_name", "header x-event-name")
events = kit.one_event(
    id=kit.or_body(kit.join("$.meta.webhook_id", _name, "$.data.id", "$.data.attributes.updated_at")),
    type=_name,
    account="$.data.attributes.store_id",
    occurred_at="$.data.attributes.updated_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-signature"),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.meta.webhook_id + $.data.id + $.data.attributes.updated_at"),
    mode=kit.mode("$.meta.test_mode", live=(False,), absent="live"),
    subject=kit.about(entity=("$.data.type", "$.data.id"), version="$.data.attributes.updated_at"),
    setup_url="https://app.lemonsqueezy.com/settings/webhooks",
)
