"""Senders that prove nothing: all they can bring is the last part of their URL, `/hooks/<source>/<secret>`.

Such a sender says `Sender(unauthenticated=True, body_is_unsigned=True)`.
"""

import hmac
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto.secret_keys import key_of, keys_of
from hookonce.providers.kit.reading.bodies import octets
from hookonce.providers.kit.signing.verdict import SignOptions

_FORM: Final = re.compile(r"[A-Za-z0-9._~-]{16,200}")


def check_secret(secret: str) -> None:
    """Raises: ValueError for what can't be guessed too hard, or has characters that a URL would encode."""
    if _FORM.fullmatch(secret) is None:
        msg = "the secret is not usable; expected 16 to 200 of A-Z a-z 0-9 . _ ~ -, since it is a part of the URL"
        raise ValueError(msg)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if its path ends with one of `secrets`; there is no time to look at. Raises: Rejected."""
    keys = keys_of(secrets, "raw")
    if not delivery.path_secret:
        raise Rejected(Reason.MISSING_HEADER, "the URL does not end with the secret of this source")
    given = octets("path", delivery.path_secret)
    right = [hmac.compare_digest(given, key) for key in keys]
    if not any(right):
        raise Rejected(Reason.BAD_SIGNATURE, "the URL ends with none of the secrets of this source")


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:  # noqa: ARG001
    """No header: what there is to prove is in the path. Raises: ValueError for a blank secret."""
    key_of(secret, "raw")
    return {}


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    """Return a delivery with the secret in its path. Raises: ValueError for a blank secret."""
    headers = {**options.get("headers", {}), **sign(body, secret, now)}
    return Delivery(options.get("method", "POST"), options.get("url", ""), headers, body, secret)
