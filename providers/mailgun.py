"""Mailgun signs `<time><token>` with HMAC-SHA256, in hex, and puts all three into the body; nothing else is signed.

JSON has them in `$.signature`, inbound routes and old webhooks in form fields. A reader of one delivery can put its
signature on any body, so what comes with a token that was there before counts as a repeat, whatever it says. The key
is the HTTP webhook signing key, one for the US and one for the EU; for a subaccount's events `parent-signature` is
made with the main account's key, and either will do. The id is `$.event-data.id`. Mailgun retries for eight hours and
may send the old signature, hence the tolerance; told 406, as of forged deliveries, it stops at once. Routes send
attachments as multipart: only its text fields are read.

https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

scheme = kit.Hmac(
    header=("signature", "parent-signature"),
    every=True,
    signed="{timestamp}{header:token}",
    timestamp=kit.Timestamp(header="timestamp", tolerance=kit.hours(9)),
)
_SIGNATURE: Final = ("timestamp", "token", "signature", "parent-signature")
_JSON: Final = 1 << 20  # it is parsed before it is known to be genuine
_FORM: Final = 5 << 20  # a mail of some length is in it twice, as HTML and stripped


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever was sent
    if kit.multipart.is_multipart(delivery.body):
        return kit.read_once(delivery, "multipart", kit.multipart.parts_in)
    most = _JSON if delivery.body.lstrip()[:1] == b"{" else _FORM
    return kit.any_body(kit.no_longer_than(most, delivery))


_message = kit.field("$.Message-Id")
_mail = kit.when_matches(_message, ".+", kit.digest(_message, "$.recipient", "$.event", "$.url"))
_token = kit.first("$.signature.token", "$.token")
events = kit.one_event(
    id=kit.first("$.event-data.id", _mail, _token),
    type=kit.first("$.event-data.event", "$.event", kit.fixed("inbound")),
    account=kit.first("$.event-data.domain.name", "$.domain"),
    occurred_at=kit.first("$.event-data.timestamp", "$.timestamp"),
    read=_read,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if the signature in its body fits the time and token there. Raises: Rejected."""
    kit.keys_of(secrets, "raw")
    data = _read(delivery)
    found = kit.json_paths.find(data, ("signature",))
    block = data if isinstance(found, str) else found  # in a form they are fields like any other
    if not isinstance(block, dict):
        raise Rejected(Reason.MISSING_HEADER, "the body has no signature")
    said = {name: text for name in _SIGNATURE if (text := kit.json_paths.find_text(block, name))}
    scheme.verify(Delivery("POST", "", said, b""), secrets, now)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return the delivery that Mailgun would send: `body`, if it is a JSON object, with a signature in it."""
    data = json.loads(body) if body.lstrip()[:1] == b"{" else {}
    token = {"token": kit.made_id(body)}
    return kit.as_json({**data, "signature": token | scheme.sign(b"", secret, now, headers=token)}, **options)


sign = kit.headers_of(deliver)
sender = kit.Sender(
    proof=("$.signature", "$.parent-signature", "$.token"),
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.event-data.id", "$.Message-Id + $.recipient", "$.token", "$.signature.token"
    ),
    volatile=("$.signature",),
    nonce=_token,
    statuses=dict.fromkeys(kit.FORGED, 406),
    max_body=25 << 20,  # Mailgun's own limit for a mail with its attachments
    setup_url="https://app.mailgun.com/mg/sending/webhooks",
)
