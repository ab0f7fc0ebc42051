"""Mailgun signs `<time><token>` with HMAC-SHA256, in hex, and puts all three into the body; nothing else is signed.

JSON has them in `$.signature`, inbound routes and old webhooks in form fields. Whoever has seen one delivery can
put its signature on any body. The key is the HTTP webhook signing key, one for the US and one for the EU; of a
subaccount's events `parent-signature` is made with the main account's key, and either will do. The id is
`$.event-data.id`. Mailgun retries for eight hours and may send the old signature, hence the tolerance; it stops at
once when it is told 406, and so a forged delivery is. Routes send multipart where there are attachments: their
text fields are read, the files stay in the raw body.

https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit import Hmac, Said, Timestamp, any_body, digest, field, first, fixed, made_id, one_event
from providers.kit.fields import only_if
from providers.kit.keys import keys_of
from providers.kit.multipart import is_multipart, parts_in

scheme = Hmac(
    header="signature",
    signed="{timestamp}{header:token}",
    timestamp=Timestamp(header="timestamp", tolerance=timedelta(hours=9)),
)
MAX_BODY = 25 << 20  # Mailgun's own limit for a mail with its attachments
CHECK, TOLERANCE = scheme.check_secret, scheme.tolerance
_JSON: Final = 1 << 20  # it is parsed before it is known to be genuine
_FORM: Final = 5 << 20  # a mail of some length is in it twice, as HTML and stripped
_PARENT: Final = "parent-signature"


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever was sent
    if is_multipart(delivery.body):
        return parts_in(delivery.body)
    most = _JSON if delivery.body.lstrip()[:1] == b"{" else _FORM
    if len(delivery.body) > most:
        raise Rejected(
            Reason.TOO_LARGE, f"the body has {len(delivery.body)} bytes, {most} are read of its kind"
        )
    return any_body(delivery)


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
_FORGED = (Reason.BAD_SIGNATURE, Reason.STALE, Reason.MISSING_HEADER, Reason.BAD_HEADER, Reason.BAD_BODY)
STATUSES = dict.fromkeys(_FORGED, 406)
VOLATILE = ("$.signature",)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.mailgun.com/mg/sending/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the signature in its body fits the time and token there. Raises: Rejected."""
    keys_of(secrets, "raw")
    said = _signature(delivery)
    try:
        scheme.verify(Delivery("POST", "", said, b""), secrets, now)
    except Rejected as error:
        if _PARENT not in said or error.reason is not Reason.BAD_SIGNATURE:
            raise
        scheme.verify(Delivery("POST", "", {**said, "signature": said[_PARENT]}, b""), secrets, now)


def _signature(delivery: Delivery) -> dict[str, str]:
    data = _read(delivery)
    block: Any = data.get("signature") if isinstance(data, dict) else None
    if isinstance(block, str):  # a form: they are fields like any other
        block = data
    if not isinstance(block, dict):
        raise Rejected(Reason.MISSING_HEADER, "the body has no signature")
    found = {name: block.get(name) for name in ("timestamp", "token", "signature", _PARENT)}
    return {name: str(value) for name, value in found.items() if isinstance(value, (str, int))}


def sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:  # noqa: ARG001
    """The three values of a signature; they belong into the body, where `deliver` puts them."""
    token = made_id(body)
    return {"token": token, **scheme.sign(b"", secret, now, headers={"token": token})}


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Mailgun would send: `body`, if it is a JSON object, with a signature in it."""
    data = json.loads(body) if body.lstrip()[:1] == b"{" else {}
    signed = json.dumps({**data, "signature": sign(body, secret, now)}, separators=(",", ":")).encode()
    return Delivery("POST", said.get("url", ""), {"content-type": "application/json"}, signed)
