"""Pusher Channels signs the body with HMAC-SHA256, in hex; `X-Pusher-Key` says which app's secret is the key.

A secret is written `<key>:<secret>`, or as a JSON object with both. Deliveries are batches without ids: an
event's is a digest of the batch's time, its place and itself, which are the same on a retry. The type is the
event's name. Retries for five minutes.

https://pusher.com/docs/channels/server_api/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    SignOptions,
    data_digest,
    digest,
    field,
    header,
    many_events,
    parts_of,
    position,
    secrets_for,
    signer,
    told_apart_by,
    whole,
)

scheme = Hmac(header="x-pusher-signature")
events = many_events(
    items="$.events",
    id=digest(whole("$.time_ms"), position(), data_digest()),
    type=field("$.name"),
    account=header("x-pusher-key"),
    occurred_at=whole("$.time_ms"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the secret of the app that it names signed it. Raises: Rejected."""
    scheme.verify(delivery, secrets_for(delivery, "x-pusher-key", secrets, "key", "secret"), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is not an app's key and its secret."""
    parts_of(secret, "key", "secret")


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    key, own = parts_of(secret, "key", "secret")
    return {"x-pusher-key": key, **scheme.sign(body, own, now, **options)}


sign = signer(_sign)

sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.time_ms + $.events[*].channel"),
    check_secret=check_secret,
    setup_url="https://dashboard.pusher.com",
)
