"""LiveKit sends an access token (JWT, HS256) in `Authorization`, with the body's SHA-256 in `sha256`, in base64.

The secret is the API key and its secret, `key:secret`: the token's `iss` must be the key. There is no
`Bearer`. The content type is `application/webhook+json`. The id is `$.id`, the same on every attempt; the
account is the API key. A token without `exp` is refused, and clocks may differ by a minute, as in LiveKit's
own SDK.

https://docs.livekit.io/home/server/webhooks/
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Sender,
    SignOptions,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    parts_of,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.crypto.jws import make
from hookonce.providers.kit.schemes.jwt import Jwt, claim

_scheme = Jwt(body_hash=("sha256", "base64"), needs=("exp",), leeway=timedelta(minutes=1))
_PARTS = ("api_key", "api_secret")
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=claim("iss"),
    occurred_at=field("$.createdAt"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if its token is by one of the API keys. Raises: Rejected."""
    known: list[tuple[str, ...]] = []
    for secret in secrets:
        with suppress(ValueError):
            known.append(parts_of(secret, *_PARTS))
    if not known:
        raise Rejected(Reason.NO_SECRET, "no usable secret; expected 'api_key:api_secret'")
    issuer = _scheme.token(delivery).claims.get("iss")
    _scheme.check(delivery, [secret.encode() for key, secret in known if key == issuer], now)


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it is an API key and its secret."""
    parts_of(secret, *_PARTS)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    key, text = parts_of(secret, *_PARTS)
    return {
        "authorization": make({"iss": key, **_scheme.claims(body, now, **options)}, text.encode(), "HS256")
    }


sign = signer(_sign)

sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.id"),
    tolerance=_scheme.tolerance,
    check_secret=check_secret,
    setup_url="https://cloud.livekit.io",
)
