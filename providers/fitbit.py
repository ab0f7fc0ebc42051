"""Fitbit signs the body with HMAC-SHA1, in base64; the key is the client secret with `&` behind it.

The secret is `client_secret:verification_code`, the latter as shown for the subscriber: a new URL is asked by GET
whether `?verify=` is that code, which wants a 204, and again with a wrong one, which wants a 404. A delivery is a list
of what has changed, each of which is an event, to be answered by asking the API. The next change of the same day looks
exactly the same, so the minute of receipt is part of the id. Fitbit wants a 204 within 5 s.

https://dev.fitbit.com/build/reference/web-api/developer-guide/using-subscriptions/
"""

from collections.abc import Sequence
from datetime import datetime
from hmac import compare_digest
from typing import Unpack

from hookonce.providers import Delivery, Reply, kit

_hmac = kit.Hmac(header="x-fitbit-signature", hash="sha1", encoding="base64")


def _key(secret: str) -> str:
    """Return what signs; nothing for a blank secret, which the `&` would make one of."""
    client_secret = secret.partition(":")[0].strip()
    return f"{client_secret}&" if client_secret else ""


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets`. Raises: Rejected."""
    _hmac.verify(delivery, [_key(secret) for secret in secrets], now)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    return _hmac.sign(body, _key(secret), now, **options)


def check_secret(secret: str) -> None:
    """Raises: ValueError for a blank secret."""
    _hmac.check_secret(_key(secret))


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Say whether a GET brings the verification code: 204 or 404; None for anything else."""
    given = kit.query_parameter(delivery, "verify")
    if given is None:
        return None
    codes = [code for _, _, code in (secret.partition(":") for secret in secrets) if code.strip()]
    offered = given.encode("utf-8", "surrogatepass")
    right = [compare_digest(offered, code.encode("utf-8", "surrogateescape")) for code in codes]
    return Reply(status=204 if any(right) else 404)


sign = kit.signer(_sign)
events = kit.many_events(
    items="$",
    id=kit.join("$.collectionType", "$.ownerId", kit.first("$.date", kit.fixed("-")), "$.subscriptionId"),
    type=kit.or_unknown("$.collectionType"),
    account="$.ownerId",
)
sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("receipt"),
    id_period=kit.minutes(1),
    accepted=Reply(status=204),
    setup_url="https://dev.fitbit.com/apps",
)
