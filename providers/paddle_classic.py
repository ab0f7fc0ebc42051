"""Paddle Classic signs all fields of its form with RSA and SHA-1, in `p_signature`; the secret is its public key.

Signed is the form as PHP would serialize it: an array of the other fields, sorted by name, all as strings with
their length in bytes. The key is the vendor's, from the page of the dashboard. The id is `$.alert_id`, the type
`$.alert_name`; a fulfilment webhook has no such fields and is known by its order. The event's data lacks
`p_signature`. Newer accounts are on Paddle Billing: `paddle_billing`.

https://developer.paddle.com/classic/webhook-reference/verifying-webhooks
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, kit

_SIGNATURE = "p_signature"


def _fields(delivery: Delivery) -> dict[str, str]:
    """Return what is signed. Raises: Rejected(bad_body)."""
    return {name: value for name, value in kit.form_body(delivery).items() if name != _SIGNATURE}


def _serialized(fields: Mapping[str, str]) -> bytes:
    """Return PHP's `serialize` of an array of strings, sorted by their names."""
    texts = [
        text.encode("utf-8", "surrogatepass") for name in sorted(fields) for text in (name, fields[name])
    ]
    return b"a:%d:{%b}" % (len(fields), b"".join(b's:%d:"%b";' % (len(text), text) for text in texts))


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if one of the keys signed its fields. Raises: Rejected."""
    keys = kit.public_keys.public_keys(secrets, "rsa-sha1")
    signature = kit.public_keys.signature_in(_SIGNATURE, kit.form_field(delivery, _SIGNATURE), "base64")
    kit.public_keys.expect_signature(keys, "rsa-sha1", signature, _serialized(_fields(delivery)))


def check_secret(secret: str) -> None:
    """Raises: ValueError with what the vendor's key looks like."""
    kit.public_keys.public_key(secret, "rsa-sha1")


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:  # noqa: ARG001
    """Return a delivery with the fields of the form `body`. Raises: ValueError unless `secret` is a private key."""
    fields = _fields(Delivery("POST", "", {}, body))
    signature = kit.public_keys.signature_of(secret, "rsa-sha1", _serialized(fields))
    return kit.as_form({**fields, _SIGNATURE: b64encode(signature).decode()}, **options)


sign = kit.headers_of(deliver)
events = kit.one_event(
    id=kit.first("$.alert_id", kit.data_digest()),
    type=kit.first("$.alert_name", kit.fixed("fulfillment")),
    account="$.user_id",
    occurred_at="$.event_time",
    read=_fields,
)


def sample(event_id: str, kind: str) -> bytes:
    """Return a form with this id and type."""
    return kit.as_form({"alert_id": event_id, "alert_name": kind}).body


sender = kit.Sender(
    proof=(f"$.{_SIGNATURE}",),
    id_is_signed=True,
    body_is_unsigned=False,
    signed_in_parts=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.alert_id", "$.p_order_id", "body", because="a fulfilment webhook is sent for an order, once"
    ),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://vendors.paddle.com/public-key",
)
