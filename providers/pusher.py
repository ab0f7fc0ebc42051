"""Pusher Channels signs the body with HMAC-SHA256, in hex; `X-Pusher-Key` says which app's secret is the key.

A secret is written `<key>:<secret>`, or as a JSON object with both. Deliveries are batches without ids: an
event's is a digest of the batch's time, its place and itself, which are the same on a retry. The type is the
event's name. Retries for five minutes.

https://pusher.com/docs/channels/server_api/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, kit

scheme = kit.Hmac(header="x-pusher-signature")
events = kit.many_events(
    items="$.events",
    id=kit.digest(kit.whole("$.time_ms"), kit.position(), kit.data_digest()),
    type="$.name",
    account="header x-pusher-key",
    occurred_at=kit.whole("$.time_ms"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the secret of the app that it names signed it. Raises: Rejected."""
    scheme.verify(delivery, kit.secrets_for(delivery, "x-pusher-key", secrets, "key", "secret"), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is not an app's key and its secret."""
    kit.parts_of(secret, "key", "secret")


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    key, own = kit.parts_of(secret, "key", "secret")
    return {"x-pusher-key": key, **scheme.sign(body, own, now, **options)}


sign = kit.signer(_sign)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.time_ms + $.events[*].channel"),
    setup_url="https://dashboard.pusher.com",
)
