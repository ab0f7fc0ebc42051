"""Brevo (Sendinblue) brings a bearer token if its webhook has one, and signs nothing.

A webhook without a token can be given a URL that ends with the secret, or one with `user:password@` before the
host: then that is the secret. There is no id (`$.id` is the webhook's): event, message, address and time are, and
of a click the link, since whoever scans a mail opens all of its links within a second. A webhook with `batched`
brings up to 500 events as an array. What is about an SMS has its state in `msg_status`. Brevo tries for a day or
two.

https://developers.brevo.com/docs/how-to-use-webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from providers import Delivery
from providers.kit import Token, data_digest, field, first, fixed, joined, many_events, signer

scheme = Token(header="authorization", prefix="Bearer ")
_basic = Token(basic=True)
sign, CHECK = signer(scheme.sign), scheme.check_secret
_at = first(field("$.ts_event"), field("$.ts_epoch"), field("$.ts"), field("$.date_event"))
_message = first(field("$['message-id']"), field("$.camp_id"))
_event = first(field("$.event"), field("$.msg_status"), field("$.eventName"))
_link = first(field("$.link"), field("$.URL"))
_known = (_event, _message, field("$.email"), _at)
events = many_events(
    items="$",
    id=first(joined(*_known, _link), joined(*_known), data_digest()),
    type=first(_event, fixed("unknown")),
    occurred_at=_at,
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://app.brevo.com/settings/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it carries one of `secrets`, by whichever way. Raises: Rejected."""
    is_basic = delivery.headers.get("authorization", "").lower().startswith("basic ")
    (_basic if is_basic else scheme).verify(delivery, secrets, now)
