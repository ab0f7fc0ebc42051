"""Increase signs as Standard Webhooks does, and before that `<time>.<body>` in `Increase-Webhook-Signature`.

The older header is `t=<ISO 8601>,v1=<hex>`, and its key is the whole secret as text, `whsec_` included; the
newer one takes the prefix off and decodes the rest. Where both are sent the newer one decides. Events are thin:
the id is `$.id`, the type `$.category`, the account the object's own. Seven retries.

https://increase.com/documentation/webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    SignOptions,
    StandardWebhooks,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

_standard = StandardWebhooks(vendors=("webhook",))
_older = Hmac(
    header="increase-webhook-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", unit="iso"),
)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.category"), fixed("unknown")),
    account=field("$.associated_object_id"),
    occurred_at=field("$.created_at"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the newer signature if it was sent, else by the older. Raises: Rejected."""
    (_standard if "webhook-signature" in delivery.headers else _older).verify(delivery, secrets, now)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    try:
        return _standard.sign(body, secret, now, **options)
    except ValueError:  # a secret that is not base64 can only sign the older way
        return _older.sign(body, secret, now, **options)


sign = signer(_sign)

sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.id"),
    tolerance=_older.tolerance,
    check_secret=_older.check_secret,
    setup_url="https://dashboard.increase.com/developers/webhooks",
)
