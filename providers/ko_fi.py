"""Ko-fi sends a form whose field `data` is JSON, with the account's verification token in it; nothing is signed.

The token is `$.verification_token`, so it is kept with the event. The id is `$.message_id`, the same when Ko-fi
tries again. The type is `Donation`, `Subscription`, `Commission` or `Shop Order`. Only `$.is_public` messages may
be shown.

https://help.ko-fi.com/hc/en-us/articles/360004162298-Does-Ko-fi-have-an-API-or-webhook
"""

import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack
from urllib.parse import urlencode

from hookonce.providers import Delivery, Reason, Rejected, kit

_read = kit.json_in_form("data")
_TOKEN = "verification_token"  # noqa: S105  a field's name


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if it carries one of `secrets`. Raises: Rejected."""
    keys = kit.keys_of(secrets, "raw")
    data = _read(delivery)
    given = data.get(_TOKEN) if isinstance(data, dict) else None
    if not isinstance(given, str):
        raise Rejected(Reason.BAD_BODY, f"data holds no {_TOKEN}")
    right = [hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key) for key in keys]
    if not any(right):
        raise Rejected(Reason.BAD_SIGNATURE, "the token is none of the secrets of this source")


events = kit.one_event(
    id=kit.first("$.message_id", kit.data_digest(f"$.{_TOKEN}")),
    type=kit.or_unknown("$.type"),
    occurred_at="$.timestamp",
    read=_read,
)


def check_secret(secret: str) -> None:
    """Raises: ValueError for a blank token."""
    kit.key_of(secret, "raw")


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:  # noqa: ARG001
    """Return a delivery with `body`, JSON or the form it is in. Raises: ValueError for a blank token."""
    check_secret(secret)
    sent = kit.form_body(Delivery("POST", "", {}, body)) if body.startswith(b"data=") else {}
    said: Any = kit.json_or_empty(sent["data"].encode() if sent else body)
    data = {**(said if isinstance(said, dict) else {}), _TOKEN: secret}
    return kit.as_form({"data": json.dumps(data)}, **options)


sign = kit.headers_of(deliver)


def sample(event_id: str, kind: str) -> bytes:
    """Return a form with this id and type."""
    return urlencode({"data": json.dumps({"message_id": event_id, "type": kind})}).encode()


sender = kit.Sender(
    proof=(f"$.data.{_TOKEN}",),
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.data.message_id"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://ko-fi.com/manage/webhooks",
)
