"""Ably signs the body with HMAC-SHA256, in base64, with the API key that the rule names.

The secret is that whole key, `<app>.<id>:<secret>`: `X-Ably-Key` says which key signed (the part before the
colon), and only the part behind it is the key of the signature. Batches come under `items`; a message has an
id, what else happens on a channel is known by its content. Of a message without an envelope the id is in a
header, which is not signed.

https://ably.com/docs/platform/integrations/webhooks
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, Event, kit

_PARTS = ("key name", "key secret")
scheme = kit.Hmac(header="x-ably-signature", encoding="base64")

_account = kit.first("$.appId", kit.header("x-ably-envelope-appid", "x-ably-key"))
_one = kit.one_event(
    id=kit.or_body("$.messages[0].id", "$.presence[0].id", "header x-ably-message-id"),
    type=kit.first("$.source", "header x-ably-envelope-source", kit.fixed("channel.message")),
    account=_account,
    read=kit.any_body_or_none,
)
_batch = kit.many_events(
    items="$.items",
    id=kit.first("$.data.messages[0].id", kit.digest("$")),
    type=kit.first("$.name", "$.source"),
    account=_account,
    occurred_at="$.timestamp",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the key that it names, one of `secrets`, has signed it. Raises: Rejected."""
    scheme.verify(delivery, kit.secrets_for(delivery, "x-ably-key", secrets, *_PARTS), now)


def events(delivery: Delivery) -> list[Event]:
    """The events of a verified `delivery`. Raises: Rejected(bad_body)."""
    body = kit.any_body_or_none(delivery)
    return _batch(delivery) if isinstance(body, dict) and "items" in body else _one(delivery)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    name, key = kit.parts_of(secret, *_PARTS)
    return {"x-ably-key": name} | scheme.sign(body, key, now, **options)


sign = kit.signer(_sign)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats=(
        "a message is the publisher's: the same text may be published again, by a rule that sends no envelope"
    ),
    body_is_unsigned=False,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.items[*].data.messages[*].id",
        "$.items[*].timestamp",
        "$.messages[*].id",
        "$.presence[*].id",
        "header x-ably-message-id",
    ),
    check_secret=kit.checker(*_PARTS),
    sample=_batch.sample,
    setup_url="https://ably.com/accounts/any/apps/any/integrations",
)
