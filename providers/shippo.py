"""Shippo proves nothing by default; on request it signs `<t>.<body>` with HMAC-SHA256, in hex.

A delivery with `Shippo-Auth-Signature` (`t=…,v1=…`) stands or falls by it, any other by a secret at the end of the
URL, or in its query as Shippo has it (`?token=…`): the same secret opens all. There is no id: it is made of the
event, the object and the time of its change. A tracker has no such time, and keeps the status while its arrival is
put off: it is the body, as is what has no time. `$.test` marks tests.

https://docs.goshippo.com/docs/tracking/webhooks/
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

_HEADER = "shippo-auth-signature"
scheme = kit.Hmac(header=_HEADER, key="v1", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t"))
_token = kit.Token(query="token")
_event = kit.field("$.event")
_object = kit.field("$.data.object_id")
events = kit.one_event(
    id=kit.or_body(kit.join(_event, _object, "$.data.object_updated")),
    type=kit.or_unknown(_event),
    account="$.data.object_owner",
    occurred_at=kit.first("$.data.object_updated", "$.data.tracking_status.status_date"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature, or else by its URL. Raises: Rejected."""
    by_url = _token if "token=" in delivery.url and not delivery.path_secret else kit.path_secret
    (scheme if _HEADER in delivery.headers else by_url).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.event + $.data.object_id + $.data.object_updated",
        "body",
        because="what has no time of its change is sent when it changes, and a retry repeats the body",
    ),
    unauthenticated=True,
    mode=kit.mode("$.test", live=(False,)),
    setup_url="https://portal.goshippo.com/api-config/webhooks",
)
