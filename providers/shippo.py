"""Shippo proves nothing by default; on request it signs `<t>.<body>` with HMAC-SHA256, in hex.

A delivery with `Shippo-Auth-Signature` (`t=…,v1=…`) stands or falls by it, any other by a secret at the end of the
URL, or in its query as Shippo has it (`?token=…`): the same secret opens all. There is no id: event and object are,
with the time of its change, for a tracker its number and status. `$.test` marks tests.

https://docs.goshippo.com/docs/tracking/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    Token,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    path_secret,
    signer,
    told_apart_by,
)

_HEADER = "shippo-auth-signature"
scheme = Hmac(header=_HEADER, key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
_token = Token(query="token")
sign = signer(scheme.sign)
_event = field("$.event")
events = one_event(
    id=first(
        join(_event, field("$.data.tracking_number"), field("$.data.tracking_status.object_id")),
        join(_event, field("$.data.object_id"), field("$.data.object_updated")),
        join(_event, field("$.data.object_id")),
        body_digest(),
    ),
    type=first(_event, fixed("unknown")),
    occurred_at=first(field("$.data.object_updated"), field("$.data.tracking_status.status_date")),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature, or else by its URL. Raises: Rejected."""
    by_url = _token if "token=" in delivery.url and not delivery.path_secret else path_secret
    (scheme if _HEADER in delivery.headers else by_url).verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "$.event + $.data.tracking_number + $.data.tracking_status.object_id",
        "$.event + $.data.object_id + $.data.object_updated",
        "$.event + $.data.object_id",
    ),
    unauthenticated=True,
    check_secret=scheme.check_secret,
    setup_url="https://portal.goshippo.com/api-config/webhooks",
)
