"""Brevo (Sendinblue) brings a bearer token if its webhook has one, and signs nothing.

A webhook without a token can be given a URL that ends with the secret, or one with `user:password@` before the host:
then that is the secret. There is no id (`$.id` is the webhook's): event, message, address and time are, and of a
click the link, since whoever scans a mail opens all of its links within a second; with `ts_epoch`, which tells
milliseconds. A webhook with `batched` brings up to 500 events as an array. What is about an SMS has its state in
`msg_status`. Brevo tries for a day or two.

https://developers.brevo.com/docs/how-to-use-webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Sender,
    Token,
    data_digest,
    field,
    first,
    fixed,
    join,
    many_events,
    signer,
    told_apart_by,
)

scheme = Token(header="authorization", prefix="Bearer ")
_basic = Token(basic=True)
sign = signer(scheme.sign)
_at = first(field("$.ts_event"), field("$.ts_epoch"), field("$.ts"), field("$.date_event"))
_message = first(field("$['message-id']"), field("$.camp_id"))
_event = first(field("$.event"), field("$.msg_status"), field("$.eventName"))
_link = first(field("$.link"), field("$.URL"))
_known = (_event, _message, field("$.email"), _at)
events = many_events(
    items="$",
    id=first(
        join(*_known, _link, field("$.ts_epoch")),
        join(*_known, _link),
        join(*_known, field("$.ts_epoch")),
        join(*_known),
        data_digest(),
    ),
    former=(join(*_known, _link), join(*_known)),
    type=first(_event, fixed("unknown")),
    occurred_at=_at,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it carries one of `secrets`, by whichever way. Raises: Rejected."""
    is_basic = delivery.headers.get("authorization", "").lower().startswith("basic ")
    (_basic if is_basic else scheme).verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by(
        "$.event + $['message-id'] + $.email + $.ts_epoch",
        "$.event + $['message-id'] + $.email + $.ts_event",
        "$[*].event + $[*]['message-id']",
        "body",
        because="events are told with their time",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://app.brevo.com/settings/webhooks",
)
