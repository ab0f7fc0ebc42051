"""Worldline (Connect, Direct) signs the body with HMAC-SHA256, in base64; `X-GCS-KeyId` says with which key.

A secret is written `<key_id>:<secret_key>`, or as a JSON object with both (`webhooks/validation` of the SDK). The
URL is probed by GET with `X-GCS-Webhooks-Endpoint-Verification`, which goes back as plain text and proves
nothing. The id is `$.id`, the account the merchant. Retries after 10 minutes, 1, 2, 8 and 24 hours.

https://docs.connect.worldline-solutions.com/documentation/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    SignOptions,
    body_digest,
    echo,
    field,
    first,
    fixed,
    one_event,
    parts_of,
    secrets_for,
    signer,
    told_apart_by,
)

_PARTS = ("key_id", "secret_key")
scheme = Hmac(header="x-gcs-signature", encoding="base64")
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.merchantId"),
    occurred_at=field("$.created"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the key that it names signed it. Raises: Rejected."""
    scheme.verify(delivery, secrets_for(delivery, "x-gcs-keyid", secrets, *_PARTS), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is not a key's id and the key."""
    parts_of(secret, *_PARTS)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    key_id, own = parts_of(secret, *_PARTS)
    return {"x-gcs-keyid": key_id, **scheme.sign(body, own, now, **options)}


sign = signer(_sign)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give the verification text of a GET request back; None for anything else."""
    probe = delivery.method == "GET"
    return echo(delivery.headers.get("x-gcs-webhooks-endpoint-verification")) if probe else None


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by("$.id"),
    check_secret=check_secret,
    handshake=handshake,
    setup_url="https://docs.connect.worldline-solutions.com/documentation/webhooks/",
)
