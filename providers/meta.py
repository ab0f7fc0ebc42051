"""Meta (Facebook, Instagram, WhatsApp, Messenger, Threads) signs the body with HMAC-SHA256, hex behind `sha256=`.

The key is the app secret; `X-Hub-Signature` (SHA-1) is sent beside it and never looked at. One delivery holds up to
1000 updates: each message, status or change is an event and is cut out into a body of its own, so `[0]` in a path is
that one. Ids: a message's own, a status's message and word (`wamid.A:read`), else a digest of entry, time and change;
so is that of a deletion, which names the message that is gone. The type is the field (`messages`), of Messenger's
items what they hold (`message`, `postback`). Threads sends one change, without `entry`. The URL is probed by GET with
a verify token of your choice: name it among the secrets as `verify:<token>`, so that it can't sign. Retries for 36
hours, WhatsApp's for a week; twice that has to be remembered.

https://developers.facebook.com/docs/graph-api/webhooks/getting-started
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(header="x-hub-signature-256", prefix="sha256=")
_TOKEN = "verify:"  # noqa: S105  a prefix, not a password
_ITEMS = ("messaging", "standby")
_NESTED = ("entry", None, ("changes", *_ITEMS), None, "value", ("messages", "statuses"), None)
_entry = "$.entry[0]"
_change = f"{_entry}.changes[0]"
_status = f"{_change}.value.statuses[0]"
_timed = (f"{_change}.value.messages[0]", _status, *(f"{_entry}.{items}[0]" for items in _ITEMS))
_times = (*(f"{place}.timestamp" for place in _timed), f"{_entry}.time", "$.time")


def _kind(view: kit.EventView) -> object:
    held = [kit.field(f"{_entry}.{items}[0]").get(view) for items in _ITEMS]
    item = next((item for item in held if isinstance(item, dict)), {})
    return next((name for name in item if name not in {"sender", "recipient", "timestamp"}), None)


def _mid(view: kit.EventView) -> object:
    """The id of a message or postback, None for its deletion: that has the same."""
    held = [
        kit.field(f"{_entry}.{items}[0].{name}").get(view)
        for items in _ITEMS
        for name in ("message", "postback")
    ]
    item = next((item for item in held if isinstance(item, dict)), {})
    return None if item.get("is_deleted") else item.get("mid")


events = kit.split_events(
    pieces=lambda data: kit.cut(data, _NESTED),
    id=kit.or_body(
        kit.field(f"{_change}.value.messages[0].id"),
        kit.join(kit.field(f"{_status}.id"), kit.field(f"{_status}.status")),
        kit.Extractor(_mid, "the item's mid"),
        kit.digest("$.object", kit.field(_entry)),
    ),
    type=kit.or_unknown(
        kit.field(f"{_change}.field"), kit.Extractor(_kind, "the item's name"), "$.object", "$.values.field"
    ),
    account=kit.first(kit.field(f"{_entry}.id"), "$.target_id"),
    occurred_at=kit.first(*map(kit.field, _times)),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if an app secret signed it; verify tokens are none. Raises: Rejected."""
    scheme.verify(delivery, [secret for secret in secrets if not secret.startswith(_TOKEN)], now)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a probe that knows the verify token, refuse one that does not; None for anything else."""
    return kit.subscribed(delivery, [secret.removeprefix(_TOKEN) for secret in secrets])


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(14),
    identity=kit.told_apart_by(
        "$.entry[*].changes[*].value.messages[*].id",
        "$.entry[*].changes[*].value.statuses[*].id",
        "$.entry[*].messaging[*].message.mid",
        "$.entry[*].messaging[*].timestamp",
        "$.entry[*].time",
    ),
    setup_url="https://developers.facebook.com/apps",
)
