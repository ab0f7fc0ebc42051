"""Kontent.ai signs the body with HMAC-SHA256, in base64; the key is the webhook's secret.

Notifications come as a list and have no ids. An item that is published again without a change looks just like the
first time, as `last_modified` is that of its text, so the minute of receipt is part of their ids. Legacy webhooks,
with the header `X-KC-Signature`, send one message with an id. The type is what is done to what
(`content_item.published`), the account the environment.

https://kontent.ai/learn/docs/webhooks/javascript
"""

from hookonce.providers import Delivery, kit


def _is_legacy(delivery: Delivery) -> bool:
    data = kit.json_body(delivery)
    return isinstance(data, dict) and "notifications" not in data and "message" in data


events = kit.one_of_two(
    kit.many_events(
        items="$.notifications",
        id="$.message.id",
        undated=kit.data_digest(),
        type=kit.or_unknown(kit.join("$.message.object_type", "$.message.action", by=".")),
        account="$.message.environment_id",
        occurred_at="$.data.system.last_modified",
    ),
    kit.one_event(
        id="$.message.id",
        undated=kit.data_digest(),
        type=kit.or_unknown(kit.join("$.message.type", "$.message.operation", by=".")),
        account="$.message.project_id",
        occurred_at="$.message.created_timestamp",
    ),
    when=_is_legacy,
)
sender = kit.Sender(
    scheme=kit.Hmac(header=("x-kontent-ai-signature", "x-kc-signature"), encoding="base64"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.message.id", "receipt"),
    id_period=kit.minutes(1),
    setup_url="https://app.kontent.ai/",
)
