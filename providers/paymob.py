"""Paymob signs twenty values of a transaction, joined without anything between, with HMAC-SHA512, in hex.

The signature is `hmac` in our URL's query; the secret is the account's HMAC secret. Nothing else of the body is signed,
and digits could be those of the value beside: ask Paymob's API before goods leave. There is no id: an event is the
state of a transaction, so its id is made of what is signed. What has another list of values (a card's token), or the
signature in the body (a subscription), is refused.

https://developers.paymob.com/paymob-docs/developers/webhook-callbacks-and-hmac/hmac/hmac-transaction-callback
"""

import json
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_EXAMPLE: Final[dict[str, object]] = {
    "amount_cents": 100000,
    "created_at": "2026-01-15T12:00:00.000000",
    "currency": "EGP",
    "error_occured": False,
    "has_parent_transaction": False,
    "id": 192036465,
    "integration_id": 4097558,
    "is_3d_secure": True,
    "is_auth": False,
    "is_capture": False,
    "is_refunded": False,
    "is_standalone_payment": True,
    "is_voided": False,
    "order.id": 217503754,
    "owner": 302852,
    "pending": False,
    "source_data.pan": "2346",
    "source_data.sub_type": "MasterCard",
    "source_data.type": "card",
    "success": True,
}
"""The paths of a transaction whose values are signed, in this order."""
_PLACES: Final = [(kit.json_paths.parse(f"$.obj.{name}"), value) for name, value in _EXAMPLE.items()]


def _message(delivery: Delivery, _: bytes = b"") -> bytes:
    """Return what is signed. Raises: Rejected(bad_body) if a value is missing."""
    data = kit.json_body(delivery)
    values = [kit.json_paths.find(data, place) for place, _ in _PLACES]
    if not all(isinstance(value, str | int) for value in values):
        raise Rejected(Reason.BAD_BODY, "the body lacks a value that Paymob signs")
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    return "".join(texts).encode("utf-8", "surrogatepass")


def _state(view: kit.EventView) -> str:
    return sha256(_message(view.delivery)).hexdigest()


scheme = kit.Hmac(query="hmac", hash="sha512", signed=_message)
events = kit.one_event(
    id=kit.Extractor(_state, "what is signed"), type=kit.or_unknown("$.type"), account="$.obj.profile_id"
)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return the delivery that Paymob would send with `body`, of another transaction if `body` is none.

    Raises: ValueError.
    """
    try:
        _message(Delivery("POST", "", {}, body))
    except Rejected:
        made: Any = {"type": "TRANSACTION"}
        for place, value in _PLACES:
            made = kit.json_paths.put(made, place, value)
        made["obj"]["id"] = int(kit.made_id(body)[:8], 16)
        body = json.dumps(made).encode()
    return scheme.deliver(body, secret, now, **options)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=True,
    retry_horizon="its pages do not say whether it tries again",
    identity=kit.told_apart_by("body", because="a transaction comes into each state once"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://accept.paymob.com/portal2/en/PaymentIntegrations",
)
