"""Mailgun signs `<time><token>` with HMAC-SHA256, in hex, and puts all three into the body; nothing else is signed.

JSON has them in `$.signature`, inbound routes and old webhooks in form fields. Whoever has seen one delivery can
put its signature on any body. The key is the HTTP webhook signing key, one for the US and one for the EU; of a
subaccount's events `parent-signature` is made with the main account's key, and either will do. The id is
`$.event-data.id`. Mailgun retries for eight hours and may send the old signature, hence the tolerance; told 406,
as of forged deliveries, it stops at once. Routes send attachments as multipart: only its text fields are read.

https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit import FORGED, Hmac, Said, Timestamp, headers_of, made_id, one_event, paths
from providers.kit.fields import digest, field, first, fixed, only_if
from providers.kit.in_body import as_json
from providers.kit.keys import keys_of
from providers.kit.multipart import is_multipart, parts_in
from providers.kit.reading import any_body, no_longer_than

scheme = Hmac(
    header=("signature", "parent-signature"),
    every=True,
    signed="{timestamp}{header:token}",
    timestamp=Timestamp(header="timestamp", tolerance=timedelta(hours=9)),
)
MAX_BODY = 25 << 20  # Mailgun's own limit for a mail with its attachments
CHECK, TOLERANCE = scheme.check_secret, scheme.tolerance
_JSON: Final = 1 << 20  # it is parsed before it is known to be genuine
_FORM: Final = 5 << 20  # a mail of some length is in it twice, as HTML and stripped


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever was sent
    if is_multipart(delivery.body):
        return parts_in(delivery.body)
    most = _JSON if delivery.body.lstrip()[:1] == b"{" else _FORM
    return any_body(no_longer_than(most, delivery))


_message = field("$.Message-Id")
_mail = only_if(_message, ".+", digest(_message, field("$.recipient"), field("$.event")))
events = one_event(
    id=first(field("$.event-data.id"), _mail, field("$.token"), field("$.signature.token")),
    type=first(field("$.event-data.event"), field("$.event"), fixed("inbound")),
    account=first(field("$.event-data.domain.name"), field("$.domain")),
    occurred_at=first(field("$.event-data.timestamp"), field("$.timestamp")),
    read=_read,
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
STATUSES = dict.fromkeys(FORGED, 406)
VOLATILE = ("$.signature",)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.mailgun.com/mg/sending/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the signature in its body fits the time and token there. Raises: Rejected."""
    keys_of(secrets, "raw")
    data = _read(delivery)
    found = paths.find(data, ("signature",))
    block = data if isinstance(found, str) else found  # in a form they are fields like any other
    if not isinstance(block, dict):
        raise Rejected(Reason.MISSING_HEADER, "the body has no signature")
    said = {name: str(value) for name, value in block.items() if isinstance(value, (str, int))}
    scheme.verify(Delivery("POST", "", said, b""), secrets, now)


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Mailgun would send: `body`, if it is a JSON object, with a signature in it."""
    data = json.loads(body) if body.lstrip()[:1] == b"{" else {}
    token = {"token": made_id(body)}
    return as_json({**data, "signature": token | scheme.sign(b"", secret, now, headers=token)}, **said)


sign = headers_of(deliver)
