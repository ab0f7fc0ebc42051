"""X signs the body with HMAC-SHA256, base64 behind `sha256=`; the key is the app's consumer (API) secret.

The URL is probed by GET about every hour with a `crc_token`, which wants HMAC-SHA256 of it under the same secret,
written like a signature: only one plain word gets that, and no body made of one is an event. Each element of the
lists `…_events` is an event and is cut out into a body of its own, so `[0]` in a path is that one. The type is the
list's name. One tweet may be news for several users, so the id is the user's and the object's, else the fingerprint.
Retries are few, if any.

https://developer.x.com/en/docs/x-api/enterprise/account-activity-api/guides/securing-webhooks
"""

from collections.abc import Iterator, Sequence
from typing import Any

from hookonce.providers import Delivery, Reason, Rejected, Reply, kit

_LIST = "_events"


def _pieces(data: Any) -> Iterator[Any]:  # noqa: ANN401
    if not isinstance(data, dict):
        raise Rejected(Reason.BAD_BODY, "the body is not a JSON object")
    return kit.cut(data, (tuple(name for name in data if name.endswith(_LIST)), None))


def _list(view: kit.EventView) -> str | None:
    return next((name for name in view.data if name.endswith(_LIST)), None)


def _object(view: kit.EventView) -> object:
    name = _list(view)
    held = view.data[name] if name else None
    item = held[0] if isinstance(held, list) and held else None
    return (item.get("id_str") or item.get("id")) if isinstance(item, dict) else None


events = kit.split_events(
    pieces=_pieces,
    id=kit.first(kit.join("$.for_user_id", kit.Extractor(_object, "the object's id")), kit.data_digest()),
    type=kit.or_unknown(kit.Extractor(_list, "the list's name"), "$.data.event_type"),
    account=kit.first("$.for_user_id", "$.data.filter.user_id"),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a CRC with its proof; None for anything else. Raises: Rejected(no_secret)."""
    made = kit.proof(kit.query_parameter(delivery, "crc_token"), secrets, "base64")
    return kit.json_reply({"response_token": f"sha256={made}"}) if made else None


sender = kit.Sender(
    scheme=kit.Hmac(header="x-twitter-webhooks-signature", prefix="sha256=", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.tweet_create_events[*].id_str",
        "$.direct_message_events[*].id",
        "$.follow_events[*].created_timestamp",
    ),
    setup_url="https://developer.x.com/en/portal/dashboard",
)
