"""Brevo (Sendinblue) brings a bearer token if its webhook has one, and signs nothing.

A webhook without a token can be given a URL that ends with the secret, or one with `user:password@` before the host:
then that is the secret. There is no id (`$.id` is the webhook's): it is made of event, message, address and time, and
for a click of the link, since a mail scanner opens all links within a second; `ts_epoch`, in milliseconds, is
part of it if it is there. A webhook with `batched` brings up to 500 events as an array. What is about an SMS has its
state in `msg_status`. Brevo tries for a day or two.

https://developers.brevo.com/docs/how-to-use-webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

scheme = kit.Token(header="authorization", prefix="Bearer ")
_basic = kit.Token(basic=True)
_at = kit.first("$.ts_event", "$.ts_epoch", "$.ts", "$.date_event")
_message = kit.first("$['message-id']", "$.camp_id")
_event = kit.first("$.event", "$.msg_status", "$.eventName")
_link = kit.first("$.link", "$.URL")
_known = (_event, _message, kit.field("$.email"), _at)
events = kit.many_events(
    items="$",
    id=kit.first(
        kit.join(*_known, _link, "$.ts_epoch"),
        kit.join(*_known, _link),
        kit.join(*_known, "$.ts_epoch"),
        kit.join(*_known),
        kit.data_digest(),
    ),
    type=kit.or_unknown(_event),
    occurred_at=_at,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it carries one of `secrets`, by whichever way. Raises: Rejected."""
    is_basic = delivery.headers.get("authorization", "").lower().startswith("basic ")
    (_basic if is_basic else scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by(
        "$.event + $['message-id'] + $.email + $.ts_epoch",
        "$.event + $['message-id'] + $.email + $.ts_event",
        "$[*].event + $[*]['message-id']",
        "body",
        because="events are told with their time",
    ),
    setup_url="https://app.brevo.com/settings/webhooks",
)
