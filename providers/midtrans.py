"""Midtrans puts `SHA512(order_id + status_code + gross_amount + server key)` into the body, and signs nothing else.

So `$.transaction_status` could be anyone's who has seen a notification of that order: ask Midtrans' API before goods
leave. For a pay account `account_id + account_status + status_code` is hashed. The digest is `$.signature_key`. There
is no id: an event is its body, with the transaction, its status and, of refunds, what was given back. Times are
Jakarta's and do not say so, so none is taken over. Nothing stands between what is hashed, so a status code, an amount
or an account of another form than Midtrans' is refused; what comes again with a digest is a repeat, whatever it says.

https://docs.midtrans.com/docs/https-notification-webhooks
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha512
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_hex = kit.speller("hex", 64)
_PAYMENT: Final = {
    "order_id": re.compile(".+", re.DOTALL),
    "status_code": re.compile("[2-5][01][0-9]"),
    "gross_amount": re.compile(r"(?:0|[1-9][0-9]{0,15})\.[0-9]{2}"),
}
_ACCOUNT: Final = {
    "account_id": re.compile("[0-9a-f-]+"),
    "account_status": re.compile("[A-Z_]+"),
    "status_code": re.compile("[2-5][01][0-9]"),
}
"""What is hashed stands without anything between: fields of another form are those of another order, shifted."""
sign = kit.signature_in_body.sign
events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown("$.transaction_status", "$.account_status"),
    account="$.merchant_id",
)


def _signed(data: Mapping[str, Any]) -> bytes:
    """Return the hashed text before the key. Raises: Rejected(bad_body)."""
    forms = _PAYMENT if "order_id" in data else _ACCOUNT
    values = {name: data.get(name) for name in forms}
    if not all(isinstance(value, str) for value in values.values()):
        raise Rejected(Reason.BAD_BODY, "the body lacks a text that Midtrans hashes")
    return "".join(map(str, values.values())).encode("utf-8", "surrogatepass")


def _message(delivery: Delivery) -> bytes:
    """Return what was hashed, all but the key. Raises: Rejected."""
    data = kit.json_body(delivery)
    return _signed(data if isinstance(data, dict) else {})


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if its digest was made with one of `secrets`. Raises: Rejected."""
    keys = kit.keys_of(secrets, "raw")
    data = kit.json_body(delivery)
    given = data.get("signature_key") if isinstance(data, dict) else None
    if not isinstance(given, str):
        raise Rejected(Reason.MISSING_HEADER, "the body holds no signature_key")
    folded = _hex.fold(given)
    if folded is None:
        raise Rejected(Reason.BAD_HEADER, "signature_key is no SHA-512 in hex")
    message = _signed(data)
    kit.expect_match([folded], (_hex.folded(sha512(message + key).digest()) for key in keys))
    forms = _PAYMENT if "order_id" in data else _ACCOUNT
    odd = next((name for name, form in forms.items() if not form.fullmatch(data[name])), None)
    if odd:
        raise Rejected(Reason.BAD_BODY, f"{odd} is not of the form that Midtrans sends")


def check_secret(secret: str) -> None:
    """Raises: ValueError for a blank key."""
    kit.key_of(secret, "raw")


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:  # noqa: ARG001
    """Return the delivery that Midtrans would send with `body`. Raises: ValueError for a blank key."""
    said = kit.json_or_empty(body)
    data = dict(said) if isinstance(said, dict) else {}
    if not all(
        isinstance(value := data.get(name), str) and form.fullmatch(value) for name, form in _PAYMENT.items()
    ):
        data |= {"order_id": kit.made_id(body), "status_code": "200", "gross_amount": "10000.00"}
    data["signature_key"] = _hex.spell(sha512(_signed(data) + kit.key_of(secret, "raw")).digest())
    return kit.as_json(data, **options)


sender = kit.Sender(
    proof=("$.signature_key",),
    id_is_signed=False,
    body_is_unsigned=True,
    signed_message=_message,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.transaction_id + $.transaction_status",
        "body",
        because="a transaction comes into each state once, and a refund in parts lists its parts",
    ),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://dashboard.midtrans.com/settings/vtweb_configuration",
)
