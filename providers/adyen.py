"""Adyen signs eight fields of each payment notification, or the whole body of others; HMAC-SHA256, in base64.

Of a payment (choose JSON) the signature is in the item, over fields joined by colons without escaping, as in Adyen's
SDKs: amount, references and outcome are covered, the rest is not. Platform and management webhooks have
`HmacSignature` over the body. The secret is the HMAC key, in hex. Payments are told by event code, PSP reference and
whether an authorisation failed; a platform's resource by its id when created (of the two sides of an internal
transfer the incoming one says so), later with type and time, and its `sequenceNumber` or else all that is said; a
token by `eventId`. The answer is `[accepted]`.

https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.providers.kit import (
    MAX_EVENTS,
    Hmac,
    Sender,
    SignOptions,
    body_digest,
    data_digest,
    digest,
    field,
    first,
    fixed,
    join,
    json_body,
    json_paths,
    many_events,
    one_event,
    one_of_two,
    read_once,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header="hmacsignature", encoding="base64", secret="hex")  # noqa: S106  a codec's name
sign = signer(scheme.sign)
_ITEMS = "$.notificationItems[*].NotificationRequestItem"
_STEPS = json_paths.parse(_ITEMS)
_PARTS = "pspReference originalReference merchantAccountCode merchantReference amount.value amount.currency"
_SIGNED = [json_paths.parse(f"$.{part}") for part in f"{_PARTS} eventCode success".split()]
_TELLING = ("pspReference", "eventCode")
_PLAIN = ("originalReference", "success")
_AMOUNT: Final = re.compile(r"(?:-?[0-9]{1,18})?:[A-Z]{0,3}")
_payment = join(field("$.eventCode"), field("$.pspReference"))
_payments = many_events(
    items=_ITEMS,
    id=first(
        when_matches(
            join(field("$.eventCode"), field("$.success")),
            "AUTHORISATION:false",
            join(_payment, fixed("failed")),
        ),
        _payment,
        digest(field("$")),
    ),
    former=(_payment,),
    type=field("$.eventCode"),
    account=field("$.merchantAccountCode"),
    occurred_at=field("$.eventDate"),
)
_id = field("$.data.id")
_type = field("$.type")
_time = first(field("$.timestamp"), field("$.createdAt"))
_number = field("$.data.sequenceNumber")
_direction = when_matches(field("$.data.category"), "internal", field("$.data.direction"))
_others = one_event(
    id=first(
        join(_type, field("$.eventId")),
        when_matches(_type, r".*\.(?:incomingTransfer|outgoingTransfer|payment)\.created", join(_id, _type)),
        when_matches(_type, r".*\.created", when_matches(_direction, "incoming", join(_id, _direction))),
        when_matches(_type, r".*\.created", _id),
        join(_id, _type, _time, _number, _direction),
        join(_id, _type, _time, _number),
        join(_id, _type, _time, data_digest()),
        join(_id, _type, data_digest()),
        body_digest(),
    ),
    former=(
        first(
            join(_type, field("$.eventId")),
            when_matches(_type, r".*\.created", _id),
            join(_id, _type, _time),
            join(_id, _type),
        ),
    ),
    type=first(_type, fixed("unknown")),
    account=first(field("$.data.balancePlatform"), field("$.data.merchantId"), field("$.data.companyId")),
    occurred_at=_time,
)


def _items(delivery: Delivery) -> list[Any]:
    """Return what is signed item by item, nothing for other bodies. Raises: Rejected(bad_body, too_large)."""
    listed = json_paths.find(json_body(delivery), ("notificationItems",))
    if isinstance(listed, list) and len(listed) > MAX_EVENTS:
        raise Rejected(Reason.TOO_LARGE, f"{len(listed)} events in one delivery, {MAX_EVENTS} are taken")
    return read_once(delivery, "items", lambda _: json_paths.every(json_body(delivery), _STEPS))


events = one_of_two(_others, _payments, when=lambda delivery: bool(_items(delivery)))


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the signature over its body, or by those of all of its items. Raises: Rejected."""
    items = [] if "hmacsignature" in delivery.headers else _items(delivery)
    for item in items:
        amount = ":".join(json_paths.find_text(item, "amount", name) for name in ("value", "currency"))
        if any(":" in json_paths.find_text(item, name) for name in (*_TELLING, *_PLAIN)) or not (
            _AMOUNT.fullmatch(amount)
        ):  # so only the merchant's own account and reference may have one
            raise Rejected(
                Reason.BAD_BODY, "a colon in what tells payments apart would let fields be shifted"
            )
        scheme.expect(json_paths.find(item, ("additionalData", "hmacSignature")), _message(item), secrets)
    if not items:
        scheme.verify(delivery, secrets, now)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    """What Adyen would send: items of payments signed one by one, or any other body as a whole."""
    data = json.loads(body) if b"notificationItems" in body else {}
    for item in json_paths.every(data, _STEPS):
        item["additionalData"] = {"hmacSignature": scheme.signature(_message(item), secret)}
    headers = {"content-type": "application/json"} if data else sign(body, secret, now)
    return Delivery("POST", options.get("url", ""), headers, json.dumps(data).encode() if data else body)


def _message(item: Any) -> bytes:  # noqa: ANN401  whatever Adyen sent
    texts = (json_paths.find_text(item, *steps) for steps in _SIGNED)
    return ":".join(texts).encode("utf-8", "surrogatepass")


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=30),
    identity=told_apart_by(
        " + ".join(f"$.notificationItems[*].NotificationRequestItem.{name}" for name in _TELLING),
        "$.type + $.eventId",
        "$.data.id",
    ),
    accepted=Reply(body=b"[accepted]"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    check_secret=scheme.check_secret,
    deliver=deliver,
    setup_url="https://docs.adyen.com/development-resources/webhooks/",
)
