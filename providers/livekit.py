"""LiveKit sends an access token (JWT, HS256) in `Authorization`, with the body's SHA-256 in `sha256`, in base64.

The secret is the API key and its secret, `key:secret`: the token's `iss` must be the key. There is no
`Bearer`. The content type is `application/webhook+json`. The id is `$.id`, the same on every attempt; the
account is the API key. A token without `exp` is refused, and clocks may differ by a minute, as in LiveKit's
own SDK.

https://docs.livekit.io/home/server/webhooks/
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_scheme = kit.Jwt(body_hash=("sha256", "base64"), needs=("exp",), leeway=kit.minutes(1))
_PARTS = ("api_key", "api_secret")
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.event"),
    account=kit.claim("iss"),
    occurred_at="$.createdAt",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if its token is by one of the API keys. Raises: Rejected."""
    known: list[tuple[str, ...]] = []
    for secret in secrets:
        with suppress(ValueError):
            known.append(kit.parts_of(secret, *_PARTS))
    if not known:
        raise Rejected(Reason.NO_SECRET, "no usable secret; expected 'api_key:api_secret'")
    issuer = _scheme.token(delivery).claims.get("iss")
    _scheme.check(delivery, [secret.encode() for key, secret in known if key == issuer], now)


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it is an API key and its secret."""
    kit.parts_of(secret, *_PARTS)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    key, text = kit.parts_of(secret, *_PARTS)
    return {
        "authorization": kit.jws.make(
            {"iss": key, **_scheme.claims(body, now, **options)}, text.encode(), "HS256"
        )
    }


sign = kit.signer(_sign)
sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.id"),
    tolerance=_scheme.tolerance,
    setup_url="https://cloud.livekit.io",
)
