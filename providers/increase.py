"""Increase signs as Standard Webhooks does, and before that `<time>.<body>` in `Increase-Webhook-Signature`.

The older header is `t=<ISO 8601>,v1=<hex>`, and its key is the whole secret as text, `whsec_` included; the
newer one takes the prefix off and decodes the rest. Where both are sent the newer one decides. Events are thin:
the id is `$.id`, the type `$.category`, the account the object's own. Seven retries.

https://increase.com/documentation/webhooks
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, kit

_standard = kit.StandardWebhooks(vendors=("webhook",))
_older = kit.Hmac(
    header="increase-webhook-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=kit.Timestamp(key="t", unit="iso"),
)
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.category"),
    account="$.associated_object_id",
    occurred_at="$.created_at",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the newer signature if it was sent, else by the older. Raises: Rejected."""
    (_standard if "webhook-signature" in delivery.headers else _older).verify(delivery, secrets, now)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    try:
        return _standard.sign(body, secret, now, **options)
    except ValueError:  # a secret that is not base64 can only sign the older way
        return _older.sign(body, secret, now, **options)


sign = kit.signer(_sign)
sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.id"),
    tolerance=_older.tolerance,
    check_secret=_older.check_secret,
    subject=kit.about(entity=("$.associated_object_type", "$.associated_object_id"), version="$.created_at"),
    setup_url="https://dashboard.increase.com/developers/webhooks",
)
