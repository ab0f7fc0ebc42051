"""Flutterwave signs the body with HMAC-SHA256, in base64 (v4); v3 brings the secret hash itself and signs nothing.

A delivery with `flutterwave-signature` stands or falls by it, one with `verif-hash` by that: the secret is the same
"secret hash", so who has seen one delivery of v3 can sign those of v4, and both count as unsigned. v4 has an id,
`$.webhook_id`; of v3 the event is known by its kind, the transaction and its status. Flutterwave tries three more
times, every half an hour.

https://developer.flutterwave.com/docs/webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Token,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

_SIGNATURE = "flutterwave-signature"
scheme = Hmac(header=_SIGNATURE, encoding="base64")
_token = Token(header="verif-hash")
sign = signer(scheme.sign)
_event = first(field("$.event"), field("$.type"), field("$['event.type']"))
events = one_event(
    id=first(
        field("$.webhook_id"),
        join(_event, field("$.data.id"), field("$.data.status")),
        body_digest(),
    ),
    type=first(_event, fixed("unknown")),
    account=field("$.data.account_id"),
    occurred_at=first(field("$.timestamp"), field("$.data.created_at"), field("$.data.created_datetime")),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature or, where it has none, by the secret that it brings. Raises: Rejected."""
    (_token if "verif-hash" in delivery.headers and _SIGNATURE not in delivery.headers else scheme).verify(
        delivery, secrets, now
    )


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(hours=3),
    identity=told_apart_by(
        "$.webhook_id",
        "$.event + $.data.id + $.data.status",
        "body",
        because="what has neither id nor status says all there is about one transaction",
    ),
    credentials=("verif-hash",),
    check_secret=scheme.check_secret,
    setup_url="https://app.flutterwave.com/dashboard/settings/webhooks",
)
