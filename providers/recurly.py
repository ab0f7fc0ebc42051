"""Recurly signs `<ms>.<body>` with HMAC-SHA256, in hex: `recurly-signature: <ms>,<hex>[,<hex>]`, without names.

There are several signatures for 24 hours after a key was rotated. The id is `$.id`; `Recurly-Notification-Id` is not
signed and not looked at. The type is what it is about and what happened, `account.created`, the account the site. XML
notifications are not signed and not taken. Ten retries, the last after some hours.

https://docs.recurly.com/recurly-subscriptions/docs/webhooks
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    SignOptions,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
)

_scheme = Hmac(
    header="recurly-signature",
    separator=",",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(header="recurly-signature-time", unit="ms"),
)
events = one_event(
    id=first(field("$.id"), body_digest()),
    former=(header("recurly-notification-id"),),
    type=first(
        join(field("$.object_type"), field("$.event_type"), by="."), field("$.event_type"), fixed("unknown")
    ),
    account=field("$.site_id"),
    occurred_at=field("$.event_time"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if one of its signatures is right. Raises: Rejected."""
    if "recurly-signature" in delivery.headers:
        time, _, signatures = delivery.headers["recurly-signature"].partition(",")
        apart = {"recurly-signature": signatures, "recurly-signature-time": time}
        delivery = replace(delivery, headers={**delivery.headers, **apart})
    _scheme.verify(delivery, secrets, now)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    apart = _scheme.sign(body, secret, now, **options)
    return {"recurly-signature": f"{apart['recurly-signature-time']},{apart['recurly-signature']}"}


sign = signer(_sign)

sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.id", new_on_retry=("header recurly-notification-id",)),
    tolerance=_scheme.tolerance,
    check_secret=_scheme.check_secret,
    setup_url="https://docs.recurly.com/recurly-subscriptions/docs/webhooks",
)
