"""Recurly signs `<ms>.<body>` with HMAC-SHA256, in hex: `recurly-signature: <ms>,<hex>[,<hex>]`, without names.

There are several signatures for 24 hours after a key was rotated. The id is `$.id`; `Recurly-Notification-Id` is not
signed and not looked at. The type is what it is about and what happened, `account.created`, the account the site. XML
notifications are not signed and not taken. Ten retries, the last after three days: each
pause is twice as long (https://docs.recurly.com/recurly-subscriptions/docs/automatic-retries).

https://docs.recurly.com/recurly-subscriptions/docs/webhooks
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, kit

_scheme = kit.Hmac(
    header="recurly-signature",
    separator=",",
    signed="{timestamp}.{body}",
    timestamp=kit.Timestamp(header="recurly-signature-time", unit="ms"),
)
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown(kit.join("$.object_type", "$.event_type", by="."), "$.event_type"),
    account="$.site_id",
    occurred_at="$.event_time",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if one of its signatures is right. Raises: Rejected."""
    if "recurly-signature" in delivery.headers:
        time, _, signatures = delivery.headers["recurly-signature"].partition(",")
        apart = {"recurly-signature": signatures, "recurly-signature-time": time}
        delivery = replace(delivery, headers={**delivery.headers, **apart})
    _scheme.verify(delivery, secrets, now)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    apart = _scheme.sign(body, secret, now, **options)
    return {"recurly-signature": f"{apart['recurly-signature-time']},{apart['recurly-signature']}"}


sign = kit.signer(_sign)
sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by("$.id", new_on_retry=("header recurly-notification-id",)),
    tolerance=_scheme.tolerance,
    check_secret=_scheme.check_secret,
    setup_url="https://docs.recurly.com/recurly-subscriptions/docs/webhooks",
)
