"""Coinbase Developer Platform signs with Hook0: `X-Hook0-Signature: t=…,h=…,v1=…`, HMAC-SHA256 in hex.

`v1` signs `<t>.<h>.<values of the headers named in h>.<body>`, `v0` only `<t>.<body>`; a header with both stands or
falls by `v1`. The key is the subscription's secret, as text. The id is `$.id`, the type `$.type`; the subscription is
the account.

https://docs.cdp.coinbase.com/webhooks/verify-signatures
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    header_lists,
    header_of,
    octets,
    one_event,
    signer,
    told_apart_by,
)

_HEADER = "x-hook0-signature"


def _signed(delivery: Delivery, stamp: bytes) -> bytes:
    """Return time, names of the headers, their values and the body, with dots between. Raises: Rejected."""
    listed, _ = header_lists.pairs(header_of(delivery.headers, (_HEADER,))[1], ",", "h", "")
    names = header_lists.only(_HEADER, "h", listed)
    values = [header_of(delivery.headers, (name.lower(),)) for name in names.split(" ")]
    parts = [stamp, octets(_HEADER, names), *(octets(*value) for value in values), delivery.body]
    return b".".join(parts)


_with_headers = Hmac(header=_HEADER, key="v1", signed=_signed, timestamp=Timestamp(key="t"))
scheme = Hmac(header=_HEADER, key="v0", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), field("$.eventType"), fixed("unknown")),
    account=field("$.data.subscriptionId"),
    occurred_at=field("$.createdAt"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the signature over its headers, or where there is none by that of time and body.

    Raises: Rejected.
    """
    has_headers = "v1=" in delivery.headers.get(_HEADER, "")
    (_with_headers if has_headers else scheme).verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://portal.cdp.coinbase.com/",
)
