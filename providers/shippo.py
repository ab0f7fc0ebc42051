"""Shippo proves nothing by default; on request it signs `<t>.<body>` with HMAC-SHA256, in hex.

A delivery with `Shippo-Auth-Signature` (`t=…,v1=…`) stands or falls by it, any other by a secret at the end
of the URL: the same secret opens both. There is no id: event and object are, with the time of its change, for
a tracker its number and status. `$.test` marks tests.

https://docs.goshippo.com/docs/tracking/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from providers import Delivery
from providers.kit import (
    Hmac,
    Timestamp,
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
    """Accept `delivery` by its signature, or else by its path. Raises: Rejected."""
    is_signed = _HEADER in delivery.headers
    (scheme.verify if is_signed else in_path.verify)(delivery, secrets, now)
