"""Kontent.ai signs the body with HMAC-SHA256, in base64; the key is the webhook's secret.

Notifications come as a list and have no ids. An item that is published again without a change looks just like the
first time, as `last_modified` is that of its text, so the minute of receipt is part of their ids. Legacy webhooks,
with the header `X-KC-Signature`, send one message with an id. The type is what is done to what
(`content_item.published`), the account the environment.

https://kontent.ai/learn/docs/webhooks/javascript
"""

from datetime import timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    data_digest,
    field,
    first,
    fixed,
    join,
    json_body,
    many_events,
    one_event,
    one_of_two,
    signer,
    told_apart_by,
)

scheme = Hmac(header=("x-kontent-ai-signature", "x-kc-signature"), encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)


def _is_legacy(delivery: Delivery) -> bool:
    data = json_body(delivery)
    return isinstance(data, dict) and "notifications" not in data and "message" in data


events = one_of_two(
    many_events(
        items="$.notifications",
        id=field("$.message.id"),
        undated=data_digest(),
        type=first(join(field("$.message.object_type"), field("$.message.action"), by="."), fixed("unknown")),
        account=field("$.message.environment_id"),
        occurred_at=field("$.data.system.last_modified"),
    ),
    one_event(
        id=field("$.message.id"),
        undated=data_digest(),
        type=first(join(field("$.message.type"), field("$.message.operation"), by="."), fixed("unknown")),
        account=field("$.message.project_id"),
        occurred_at=field("$.message.created_timestamp"),
    ),
    when=_is_legacy,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.message.id", "receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://app.kontent.ai/",
)
