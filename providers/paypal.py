"""PayPal signs `<transmission id>|<time>|<webhook id>|<CRC32 of the body>` (RSA, SHA-256) with a fetched key.

The secret is the webhook's id, from the dashboard; it is not sent, only signed. The certificate at
`PAYPAL-CERT-URL` is fetched from PayPal's API hosts only, and must be PayPal's. The checksum (unsigned,
decimal) is no hash: whoever has seen one delivery can make other bodies that fit, so the body counts as
unsigned. Ask PayPal's API about the id before money moves. The id is `$.id`, the same on every attempt;
PayPal tries 25 times in three days. The simulator signs for the webhook id `WEBHOOK_ID`. `id:PEM` as the
secret pins a key.

https://developer.paypal.com/api/rest/webhooks/rest/
"""

import zlib
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_RSA: Final = "rsa-sha256"
_SECRET: Final = ("webhook_id", "cert_pem")
_TIME: Final = kit.Timestamp(header="paypal-transmission-time", unit="iso", tolerance=kit.days(4))
_ALGORITHM: Final = "SHA256withRSA"
_HEADERS: Final = ("paypal-transmission-id", "paypal-transmission-time", "paypal-auth-algo")
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.event_type"),
    account=kit.first("$.resource.payee.merchant_id", "$.resource.payee.email_address"),
    occurred_at="$.create_time",
)
_FETCHES = (r"https://api(?:-m)?(?:\.sandbox)?\.paypal\.com/v1/notifications/certs/CERT-[A-Za-z0-9-]{1,100}",)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: kit.Documents = None) -> None:
    """Accept `delivery` if PayPal sent it to one of the webhooks. Raises: Rejected, KeyNeeded."""
    owners = kit.owners_of(secrets, *_SECRET)
    number, written, algorithm = (kit.header_of(delivery.headers, (name,))[1] for name in _HEADERS)
    signature = kit.public_keys.signature_in(
        *kit.header_of(delivery.headers, ("paypal-transmission-sig",)), "base64"
    )
    at = _TIME.moment(written)
    url = delivery.headers.get("paypal-cert-url")
    for owner in owners if algorithm == _ALGORITHM else ():
        if owner.key:
            key = kit.public_keys.public_keys([owner.key], _RSA)[0]
        else:
            key = kit.certificates.key_of_certificate(
                kit.fetched(url, keys, _FETCHES), _RSA, at, ".paypal.com"
            )
        if kit.public_keys.verifies(
            key, _RSA, signature, _message(number, written, owner.name, delivery.body)
        ):
            return _TIME.check(at.timestamp(), now)
    raise Rejected(Reason.BAD_SIGNATURE, "PayPal signed this for none of the webhooks of this source")


def _message(number: str, written: str, webhook: str, body: bytes) -> bytes:
    return kit.octets("paypal-transmission-id", f"{number}|{written}|{webhook}|{zlib.crc32(body)}")


def _signed(delivery: Delivery) -> bytes:
    """Return what was signed, but for the webhook's id, which is not sent. Raises: Rejected."""
    number, written = (kit.header_of(delivery.headers, (name,))[1] for name in _HEADERS[:2])
    return _message(number, written, "", delivery.body)


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it is a webhook's id, alone or with a key."""
    if not kit.owner_of(secret, *_SECRET).name.replace("_", "").isalnum():
        raise ValueError("the secret is not usable; expected the webhook's id, such as '1JE4291016473214C'")


def sign(body: bytes, secret: str, now: datetime, **_: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Return the headers. Raises: ValueError unless `secret` is `webhook_id:PEM` with a private key."""
    owner = kit.owner_of(secret, *_SECRET)
    written = _TIME.write(now)
    number = kit.made_id(body)
    signature = kit.public_keys.signature_of(owner.key, _RSA, _message(number, written, owner.name, body))
    return dict(zip(_HEADERS, (number, written, _ALGORITHM), strict=True)) | {
        "paypal-transmission-sig": b64encode(signature).decode(),
        "paypal-cert-url": "https://api.paypal.com/v1/notifications/certs/CERT-test",
    }


sender = kit.Sender(
    proof=("header:paypal-transmission-sig",),
    id_is_signed=False,
    body_is_unsigned=True,
    signed_message=_signed,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.id"),
    tolerance=_TIME.tolerance,
    fetches=_FETCHES,
    subject=kit.about(entity=("$.resource_type", "$.resource.id"), version="$.create_time"),
    setup_url="https://developer.paypal.com/dashboard/applications",
)
