"""Box signs `<body><BOX-DELIVERY-TIMESTAMP>` with HMAC-SHA256, in base64, once for each of two keys.

The signatures are in `BOX-SIGNATURE-PRIMARY` and `-SECONDARY`; either key may be configured, or both, and
keys can so be replaced one at a time. The time may be ten minutes off, as in Box' SDK (which takes none from
the future). What is not ASCII may be signed with its escapes (backslash u) though it was sent as it is: the
SDK tries both. The id is `$.id`; a body without one has that of the delivery, which is not signed and new for
each attempt.

https://developer.box.com/guides/webhooks/v2/signatures-v2/
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_SAID: Final = {"box-signature-version": "1", "box-signature-algorithm": "HmacSHA256"}
scheme = kit.Hmac(
    header=("box-signature-primary", "box-signature-secondary"),
    every=True,
    encoding="base64",
    signed="{body}{timestamp}",
    timestamp=kit.Timestamp(header="box-delivery-timestamp", unit="iso", tolerance=kit.minutes(10)),
)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    return {**_SAID, **scheme.sign(body, secret, now, **options)}


sign = kit.signer(_sign, event_id="box-delivery-id")
events = kit.one_event(
    id=kit.first("$.id", "header box-delivery-id"),
    type=kit.or_unknown("$.trigger"),
    account=kit.first("$.webhook.id", "$.created_by.id"),
    occurred_at="$.created_at",
)
_CONTROLS: Final = bytes({*range(32)} - {*b"\t\n\r"})
_PUT_BACK: Final = (
    ("\\u0002", '"'),
    ("\\n", "\n"),
    ("\\r", "\r"),
    ("\\t", "\t"),
    ("\\u007f", "\x7f"),
    ("\\u0001", "\\"),
)
"""What the encoder of JSON escapes besides: → what it was. The backslash comes last, as all others begin with one."""


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by one of its signatures, over the body as it is or escaped. Raises: Rejected."""
    try:
        scheme.verify(delivery, secrets, now)
    except Rejected as error:
        if error.reason is not Reason.BAD_SIGNATURE or delivery.body.isascii():
            raise
        scheme.verify(replace(delivery, body=kit.read_once(delivery, "escaped", _escaped)), secrets, now)


def _escaped(body: bytes) -> bytes:
    r"""The JSON `body` with `\u00e9` for what is not ASCII. Raises: Rejected(bad_body, bad_signature).

    Not character by character: anybody may send a megabyte of them. As JSON holds no control characters but
    white space, two of them can stand for what the encoder would escape and what it escapes with.
    """
    if len(body.translate(None, _CONTROLS)) != len(body):
        raise Rejected(Reason.BAD_SIGNATURE, "no signature fits this body, and it is no JSON to be escaped")
    text = json.dumps(kit.text_of(body).replace("\\", "\x01").replace('"', "\x02"))[1:-1]
    for escaped, plain in _PUT_BACK:
        text = text.replace(escaped, plain)
    return text.encode("ascii")


def _signed(delivery: Delivery) -> bytes:
    """Return what was signed, escaped: the same for a body that was sent as it is or with its escapes."""
    if delivery.body.isascii():
        return scheme.signed_message(delivery)
    return scheme.signed_message(replace(delivery, body=kit.read_once(delivery, "escaped", _escaped)))


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="what lacks an id is of an older form, of which no time is known",
    body_is_unsigned=False,
    signed_message=_signed,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.id", "header box-delivery-id"),
    subject=kit.about(entity=("$.source.type", "$.source.id"), version="$.created_at"),
    setup_url="https://app.box.com/developers/console",
)
