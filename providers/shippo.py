"""Shippo proves nothing by default; on request it signs `<t>.<body>` with HMAC-SHA256, in hex.

A delivery with `Shippo-Auth-Signature` (`t=…,v1=…`) stands or falls by it, any other by a secret at the end of the
URL, or in its query as Shippo has it (`?token=…`): the same secret opens all. There is no id: event and object are,
with the time of its change, for a tracker its number and status. `$.test` marks tests.

https://docs.goshippo.com/docs/tracking/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from providers import Delivery
from providers.kit import (
    Hmac,
    Timestamp,
    Token,
    body_digest,
    field,
    first,
    fixed,
    in_path,
    joined,
    one_event,
    signer,
)

_HEADER = "shippo-auth-signature"
scheme = Hmac(header=_HEADER, key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
_token = Token(query="token")
sign, CHECK = signer(scheme.sign), scheme.check_secret
_event = field("$.event")
events = one_event(
    id=first(
        joined(_event, field("$.data.tracking_number"), field("$.data.tracking_status.object_id")),
        joined(_event, field("$.data.object_id"), field("$.data.object_updated")),
        joined(_event, field("$.data.object_id")),
        body_digest(),
    ),
    type=first(_event, fixed("unknown")),
    occurred_at=first(field("$.data.object_updated"), field("$.data.tracking_status.status_date")),
)
BODY_IS_UNSIGNED = True
ID_IS_SIGNED = False
UNAUTHENTICATED = True
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://portal.goshippo.com/api-config/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature, or else by its URL. Raises: Rejected."""
    by_url = _token if "token=" in delivery.url and not delivery.path_secret else in_path
    (scheme if _HEADER in delivery.headers else by_url).verify(delivery, secrets, now)
