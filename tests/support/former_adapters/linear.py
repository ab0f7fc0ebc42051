"""Linear signs the body with HMAC-SHA256, in hex; the time that counts is in the body, `$.webhookTimestamp`.

The header `Linear-Timestamp` is not signed, so it is not looked at (as in Linear's SDK). The time, in ms, may
be off by a minute; it is made anew on each attempt. The id is `Linear-Delivery`, outside of what is signed.
The type is the entity and what was done, `Issue.create`. Retries after a minute, an hour and six hours.

https://linear.app/developers/webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    header,
    instant,
    join,
    json_body,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="linear-signature")
_time = Timestamp(
    key="webhookTimestamp", unit="ms", tolerance=timedelta(minutes=1), ahead=timedelta(minutes=1)
)  # as in its SDK, both ways
sign = signer(scheme.sign, event_id="linear-delivery")
_VOLATILE = ("$.webhookTimestamp",)
events = one_event(
    id=first(header("linear-delivery"), body_digest(*_VOLATILE)),
    type=first(
        join(field("$.type"), field("$.action"), by="."),
        field("$.type"),
        header("linear-event"),
        fixed("unknown"),
    ),
    account=first(field("$.organizationId"), field("$.webhookId")),
    occurred_at=first(field("$.createdAt"), field("$.webhookTimestamp")),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if its signature is right, and its own time if it has one. Raises: Rejected."""
    scheme.verify(delivery, secrets, now)
    sent = _sent_at(delivery)
    if sent is not None:
        _time.check(sent.timestamp(), now)


def _sent_at(delivery: Delivery) -> datetime | None:
    try:
        body = json_body(delivery)
    except Rejected:  # authentic and unreadable: `events` says so
        return None
    return instant(body.get("webhookTimestamp")) if isinstance(body, dict) else None


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=1),
    disables_after="a delivery whose third retry failed",
    identity=told_apart_by("header linear-delivery"),
    tolerance=_time.tolerance,
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://linear.app/settings/api",
)
