"""Flutterwave signs the body with HMAC-SHA256, in base64 (v4); v3 brings the secret hash itself and signs nothing.

A delivery with `flutterwave-signature` stands or falls by it, one with `verif-hash` by that: the secret is the same
"secret hash", so whoever has seen one delivery of v3 can sign those of v4, and both count as unsigned. v4 has an id,
`$.webhook_id`; of v3 the event is known by its kind, the transaction and its status. Flutterwave tries three more
times, every half an hour.

https://developer.flutterwave.com/docs/webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

_SIGNATURE = "flutterwave-signature"
scheme = kit.Hmac(header=_SIGNATURE, encoding="base64")
_token = kit.Token(header="verif-hash")
_event = kit.first("$.event", "$.type", "$['event.type']")
events = kit.one_event(
    id=kit.or_body("$.webhook_id", kit.join(_event, "$.data.id", "$.data.status")),
    type=kit.or_unknown(_event),
    account="$.data.account_id",
    occurred_at=kit.first("$.timestamp", "$.data.created_at", "$.data.created_datetime"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature or, where it has none, by the secret that it brings. Raises: Rejected."""
    (_token if "verif-hash" in delivery.headers and _SIGNATURE not in delivery.headers else scheme).verify(
        delivery, secrets, now
    )


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.hours(3),
    identity=kit.told_apart_by(
        "$.webhook_id",
        "$.event + $.data.id + $.data.status",
        "body",
        because="what has neither id nor status says all there is about one transaction",
    ),
    credentials=("verif-hash",),
    setup_url="https://app.flutterwave.com/dashboard/settings/webhooks",
)
