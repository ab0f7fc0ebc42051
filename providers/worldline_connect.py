"""Worldline (Connect, Direct) signs the body with HMAC-SHA256, in base64; `X-GCS-KeyId` says with which key.

A secret is written `<key_id>:<secret_key>`, or as a JSON object with both (`webhooks/validation` of the SDK). The
URL is probed by GET with `X-GCS-Webhooks-Endpoint-Verification`, which goes back as plain text and proves
nothing. The id is `$.id`, the account the merchant. Retries after 10 minutes, 1, 2, 8 and 24 hours.

https://docs.connect.worldline-solutions.com/documentation/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, Reply, kit

_PARTS = ("key_id", "secret_key")
scheme = kit.Hmac(header="x-gcs-signature", encoding="base64")
events = kit.one_event(
    id=kit.or_body("$.id"), type=kit.or_unknown("$.type"), account="$.merchantId", occurred_at="$.created"
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the key that it names signed it. Raises: Rejected."""
    scheme.verify(delivery, kit.secrets_for(delivery, "x-gcs-keyid", secrets, *_PARTS), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is not a key's id and the key."""
    kit.parts_of(secret, *_PARTS)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    key_id, own = kit.parts_of(secret, *_PARTS)
    return {"x-gcs-keyid": key_id, **scheme.sign(body, own, now, **options)}


sign = kit.signer(_sign)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give the verification text of a GET request back; None for anything else."""
    probe = delivery.method == "GET"
    return kit.echo(delivery.headers.get("x-gcs-webhooks-endpoint-verification")) if probe else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://docs.connect.worldline-solutions.com/documentation/webhooks/",
)
