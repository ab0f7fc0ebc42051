"""Braintree sends a form: `bt_payload`, XML in base64, and `bt_signature`, made of that text with HMAC-SHA1.

The secret is `public_key:private_key` (or JSON with these names). `bt_signature` has pairs of a public key and
a signature in hex, made with the SHA-1 of the private key. There is no id: it is made of the XML, which is in
`data` with the kind, time and merchant beside it. The URL is asked by GET to sign `bt_challenge`: 20 to 32 hex
digits, nothing else, and no payload of such a form is taken for signed.

https://developer.paypal.com/braintree/docs/guides/webhooks/overview
"""

import re
from base64 import encodebytes
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha1
from typing import Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply, kit

scheme = kit.Hmac(header="bt_signature", hash="sha1", separator="&", secret="hex")
_check_secret = kit.checker("public_key", "private_key")
_CHALLENGE = re.compile(r"[a-f0-9]{20,32}")


def _keys(secrets: Sequence[str]) -> list[tuple[str, str]]:
    pairs = kit.all_parts_of(secrets, "public_key", "private_key")
    return [(public, sha1(private.encode()).hexdigest()) for public, private in pairs]  # noqa: S324  Braintree's


def _signed(text: str, *secrets: str) -> str:
    public, key = _keys(secrets)[0]
    return f"{public}|{scheme.signature(text.encode(), key)}"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if its payload is signed with one of `secrets`. Raises: Rejected."""
    keys = _keys(secrets)
    payload = kit.form_field(delivery, "bt_payload")
    pairs = [pair.partition("|") for pair in kit.form_field(delivery, "bt_signature").split("&")]
    given = "&".join(text for public, _, text in pairs if public in dict(keys))
    if not given:
        raise Rejected(Reason.BAD_SIGNATURE, "bt_signature names none of the public keys of this source")
    if _CHALLENGE.fullmatch(payload.strip()):
        raise Rejected(Reason.BAD_BODY, "bt_payload is a challenge")
    scheme.expect(given, payload.encode(), [key for _, key in keys])


events = kit.one_event(
    id=kit.digest("$.xml"),
    type="$.kind",
    account="$.source-merchant-id",
    occurred_at="$.timestamp",
    read=kit.xml_body.xml_in_form("bt_payload", "kind", "timestamp", "source-merchant-id"),
)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:  # noqa: ARG001
    """Return a delivery with `body` as the notification, or with the payload of the form `body`."""
    _check_secret(secret)
    sent = kit.form_body(Delivery("POST", "", {}, body)) if body.startswith(b"bt_") else {}
    payload = sent.get("bt_payload") or encodebytes(body).decode()
    return kit.as_form({"bt_signature": _signed(payload, secret), "bt_payload": payload}, **options)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Sign a challenge; None for anything else."""
    challenge = kit.query_parameter(delivery, "bt_challenge", _CHALLENGE)
    return Reply(body=_signed(challenge, *secrets).encode()) if challenge else None


sign = kit.headers_of(deliver)
sender = kit.Sender(
    proof=("$.bt_signature",),
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    signed_in_parts=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("xml timestamp", "xml id", "xml kind"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    check_secret=_check_secret,
    sample=kit.xml_body.xml_sample(
        "<notification><kind>{type}</kind><subject><id>{id}</id></subject></notification>"
    ),
    setup_url="https://www.braintreegateway.com/login",
)
