"""Mailgun signs `<time><token>` with HMAC-SHA256, in hex, and puts all three into the body; nothing else is signed.

JSON has them in `$.signature`, inbound routes and old webhooks in form fields. Whoever has seen one delivery can
put its signature on any body. The key is the HTTP webhook signing key, one for the US and one for the EU. The
id is `$.event-data.id`. Mailgun retries for eight hours and may send the old signature, hence the tolerance; it
stops at once when it is told 406, and so a forged delivery is. Routes that send multipart are not read.

https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit import Hmac, Said, Timestamp, any_body, digest, field, first, fixed, made_id, one_event
from providers.kit.keys import keys_of

scheme = Hmac(
    header="signature",
    signed="{timestamp}{header:token}",
    timestamp=Timestamp(header="timestamp", tolerance=timedelta(hours=9)),
)
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
CHECK, TOLERANCE = scheme.check_secret, scheme.tolerance
_mail = digest(field("$.Message-Id"), field("$.recipient"), field("$.event"))
events = one_event(
    id=first(field("$.event-data.id"), _mail, field("$.token"), field("$.signature.token")),
    type=first(field("$.event-data.event"), field("$.event"), fixed("inbound")),
    account=first(
        field("$.event-data.domain.name"), field("$.signature.parent-signature"), field("$.domain")
    ),
    occurred_at=first(field("$.event-data.timestamp"), field("$.timestamp")),
    read=any_body,
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
    scheme.verify(Delivery("POST", "", _signature(delivery), b""), secrets, now)


def _signature(delivery: Delivery) -> dict[str, str]:
    data = any_body(delivery)
    block: Any = data.get("signature") if isinstance(data, dict) else None
    if isinstance(block, str):  # a form: they are fields like any other
        block = data
    if not isinstance(block, dict):
        raise Rejected(Reason.MISSING_HEADER, "the body has no signature")
    found = {name: block.get(name) for name in ("timestamp", "token", "signature")}
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
