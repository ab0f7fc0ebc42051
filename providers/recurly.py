"""Recurly signs `<ms>.<body>` with HMAC-SHA256, in hex: `recurly-signature: <ms>,<hex>[,<hex>]`, without names.

There are several signatures for 24 hours after a key was rotated. The id is `Recurly-Notification-Id`, the same
on every retry and not signed, else `$.id`; the type is what it is about and what happened, `account.created`,
the account the site. XML notifications are not signed and not taken. Ten retries, the last after some hours.

https://docs.recurly.com/recurly-subscriptions/docs/webhooks
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Unpack

from providers import Delivery
from providers.kit import (
    Hmac,
    Said,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    header,
    joined,
    one_event,
    signer,
)

_scheme = Hmac(
    header="recurly-signature",
    separator=",",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(header="recurly-signature-time", unit="ms"),
)
CHECK, TOLERANCE = _scheme.check_secret, _scheme.tolerance
events = one_event(
    id=first(header("recurly-notification-id"), field("$.id"), body_digest()),
    type=first(
        joined(field("$.object_type"), field("$.event_type"), by="."), field("$.event_type"), fixed("unknown")
    ),
    account=field("$.site_id"),
    occurred_at=field("$.event_time"),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://docs.recurly.com/recurly-subscriptions/docs/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if one of its signatures is right. Raises: Rejected."""
    if "recurly-signature" in delivery.headers:
        time, _, signatures = delivery.headers["recurly-signature"].partition(",")
        apart = {"recurly-signature": signatures, "recurly-signature-time": time}
        delivery = replace(delivery, headers={**delivery.headers, **apart})
    _scheme.verify(delivery, secrets, now)


def _sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
    apart = _scheme.sign(body, secret, now, **said)
    return {"recurly-signature": f"{apart['recurly-signature-time']},{apart['recurly-signature']}"}


sign = signer(_sign, event_id="recurly-notification-id")
