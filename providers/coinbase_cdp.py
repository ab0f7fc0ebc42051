"""Coinbase Developer Platform signs with Hook0: `X-Hook0-Signature: t=…,h=…,v1=…`, HMAC-SHA256 in hex.

`v1` signs `<t>.<h>.<values of the headers named in h>.<body>`, `v0` only `<t>.<body>`; a header with both stands or
falls by `v1`. The key is the subscription's secret, as text. The id is `$.id`, the type `$.type`; the subscription is
the account.

https://docs.cdp.coinbase.com/webhooks/verify-signatures
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

_HEADER = "x-hook0-signature"


def _signed(delivery: Delivery, stamp: bytes) -> bytes:
    """Return time, names of the headers, their values and the body, with dots between. Raises: Rejected."""
    listed, _ = kit.header_lists.pairs(kit.header_of(delivery.headers, (_HEADER,))[1], ",", "h", "")
    names = kit.header_lists.only(_HEADER, "h", listed)
    values = [kit.header_of(delivery.headers, (name.lower(),)) for name in names.split(" ")]
    parts = [stamp, kit.octets(_HEADER, names), *(kit.octets(*value) for value in values), delivery.body]
    return b".".join(parts)


_with_headers = kit.Hmac(header=_HEADER, key="v1", signed=_signed, timestamp=kit.Timestamp(key="t"))
scheme = kit.Hmac(header=_HEADER, key="v0", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t"))
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.type", "$.eventType"),
    account="$.data.subscriptionId",
    occurred_at="$.createdAt",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the signature over its headers, or where there is none by that of time and body.

    Raises: Rejected.
    """
    has_headers = "v1=" in delivery.headers.get(_HEADER, "")
    (_with_headers if has_headers else scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://portal.cdp.coinbase.com/",
)
