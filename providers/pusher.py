"""Pusher Channels signs the body with HMAC-SHA256, in hex; `X-Pusher-Key` says which app's secret is the key.

A secret is written `<key>:<secret>`, or as a JSON object with both. Deliveries are batches without ids: an
event's is a digest of the batch's time, its place and itself, which are the same on a retry. The type is the
event's name. Retries for five minutes.

https://pusher.com/docs/channels/server_api/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Unpack

from providers import Delivery
from providers.kit import Hmac, Said, data_digest, digest, field, header, many_events, position, signer, whole
from providers.kit.composite import parts_of, secrets_for

scheme = Hmac(header="x-pusher-signature")
events = many_events(
    items="$.events",
    id=digest(whole("$.time_ms"), position(), data_digest()),
    type=field("$.name"),
    account=header("x-pusher-key"),
    occurred_at=whole("$.time_ms"),
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://dashboard.pusher.com"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the secret of the app that it names signed it. Raises: Rejected."""
    scheme.verify(delivery, secrets_for(delivery, "x-pusher-key", secrets, "key", "secret"), now)


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError for what is not an app's key and its secret."""
    parts_of(secret, "key", "secret")


def _sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
    key, own = parts_of(secret, "key", "secret")
    return {"x-pusher-key": key, **scheme.sign(body, own, now, **said)}


sign = signer(_sign)
