"""Linear signs the body with HMAC-SHA256, in hex; the time that counts is in the body, `$.webhookTimestamp`.

The header `Linear-Timestamp` is not signed, so it is not looked at (as in Linear's SDK). The time, in ms, may
be off by a minute; it is made anew on each attempt. The id is `Linear-Delivery`, outside of what is signed.
The type is the entity and what was done, `Issue.create`. Retries after a minute, an hour and six hours.

https://linear.app/developers/webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, Rejected, kit

scheme = kit.Hmac(header="linear-signature")
_time = kit.Timestamp(
    key="webhookTimestamp", unit="ms", tolerance=kit.minutes(1), ahead=kit.minutes(1)
)  # as in its SDK, both ways
sign = kit.signer(scheme.sign, event_id="linear-delivery")
_VOLATILE = ("$.webhookTimestamp",)
events = kit.one_event(
    id=kit.or_body("header linear-delivery", without=_VOLATILE),
    type=kit.or_unknown(kit.join("$.type", "$.action", by="."), "$.type", "header linear-event"),
    account=kit.first("$.organizationId", "$.webhookId"),
    occurred_at=kit.first("$.createdAt", "$.webhookTimestamp"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if its signature is right, and its own time if it has one. Raises: Rejected."""
    scheme.verify(delivery, secrets, now)
    sent = _sent_at(delivery)
    if sent is not None:
        _time.check(sent.timestamp(), now)


def _sent_at(delivery: Delivery) -> datetime | None:
    try:
        body = kit.json_body(delivery)
    except Rejected:  # authentic and unreadable: `events` says so
        return None
    return kit.instant(body.get("webhookTimestamp")) if isinstance(body, dict) else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=False,
    retry_horizon=kit.days(1),
    disables_after="a delivery whose third retry failed",
    identity=kit.told_apart_by("header linear-delivery"),
    tolerance=_time.tolerance,
    volatile=_VOLATILE,
    holds_repeats="a body names its webhook, and the moment at which what it is about was changed",
    subject=kit.about(entity=("$.type", "$.data.id"), version="$.createdAt"),
    setup_url="https://linear.app/settings/api",
)
