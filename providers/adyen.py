"""Adyen signs eight fields of each payment notification, or the whole body of others; HMAC-SHA256, in base64.

For a payment (choose JSON) the signature is in the item, over fields joined by colons without escaping, as in Adyen's
SDKs: amount, references and outcome are covered, the rest is not. An item without a right signature is refused by
itself, and the others of its batch are taken in. Platform and management webhooks have
`HmacSignature` over the body. The secret is the HMAC key, in hex. Payments are told apart by event code, PSP
reference and whether an authorisation failed; a platform's resource by its id when created (of the two sides of an
internal transfer the incoming one says so), later with type and time, and its `sequenceNumber` or else all that is
said; a token by `eventId`. The answer is `[accepted]`.

https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply, kit

scheme = kit.Hmac(header="hmacsignature", encoding="base64", secret="hex")
sign = kit.signer(scheme.sign)
_ITEMS = "$.notificationItems[*].NotificationRequestItem"
_STEPS = kit.json_paths.parse(_ITEMS)
_PARTS = "pspReference originalReference merchantAccountCode merchantReference amount.value amount.currency"
_SIGNED = [kit.json_paths.parse(f"$.{part}") for part in f"{_PARTS} eventCode success".split()]
_TELLING = ("pspReference", "eventCode")
_PLAIN = ("originalReference", "success")
_AMOUNT: Final = re.compile(r"(?:-?[0-9]{1,18})?:[A-Z]{0,3}")
_payment = kit.join("$.eventCode", "$.pspReference")
_payments = kit.many_events(
    items=_ITEMS,
    id=kit.first(
        kit.when_matches(
            kit.join("$.eventCode", "$.success"),
            "AUTHORISATION:false",
            kit.join(_payment, kit.fixed("failed")),
        ),
        _payment,
        kit.digest("$"),
    ),
    type="$.eventCode",
    account="$.merchantAccountCode",
    occurred_at="$.eventDate",
)
_id = kit.field("$.data.id")
_type = kit.field("$.type")
_time = kit.first("$.timestamp", "$.createdAt")
_number = kit.field("$.data.sequenceNumber")
_direction = kit.when_matches("$.data.category", "internal", "$.data.direction")
_others = kit.one_event(
    id=kit.or_body(
        kit.join(_type, "$.eventId"),
        kit.when_matches(
            _type, r".*\.(?:incomingTransfer|outgoingTransfer|payment)\.created", kit.join(_id, _type)
        ),
        kit.when_matches(
            _type, r".*\.created", kit.when_matches(_direction, "incoming", kit.join(_id, _direction))
        ),
        kit.when_matches(_type, r".*\.created", _id),
        kit.join(_id, _type, _time, _number, _direction),
        kit.join(_id, _type, _time, _number),
        kit.join(_id, _type, _time, kit.data_digest()),
        kit.join(_id, _type, kit.data_digest()),
    ),
    type=kit.or_unknown(_type),
    account=kit.first("$.data.balancePlatform", "$.data.merchantId", "$.data.companyId"),
    occurred_at=_time,
)


def _items(delivery: Delivery) -> list[Any]:
    """Return what is signed item by item, nothing for other bodies. Raises: Rejected(bad_body, too_large)."""
    listed = kit.json_paths.find(kit.json_body(delivery), ("notificationItems",))
    if isinstance(listed, list) and len(listed) > kit.MAX_EVENTS:
        raise Rejected(Reason.TOO_LARGE, f"{len(listed)} events in one delivery, {kit.MAX_EVENTS} are taken")
    return kit.read_once(delivery, "items", lambda _: kit.json_paths.every(kit.json_body(delivery), _STEPS))


events = kit.one_of_two(_others, _payments, when=lambda delivery: bool(_items(delivery)))


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the signature over its body, or by those of all of its items. Raises: Rejected."""
    items = [] if "hmacsignature" in delivery.headers else _items(delivery)
    for item in items:
        amount = ":".join(kit.json_paths.find_text(item, "amount", name) for name in ("value", "currency"))
        if any(":" in kit.json_paths.find_text(item, name) for name in (*_TELLING, *_PLAIN)) or not (
            _AMOUNT.fullmatch(amount)
        ):  # so only the merchant's own account and reference may have one
            raise Rejected(
                Reason.BAD_BODY, "a colon in what tells payments apart would let fields be shifted"
            )
        scheme.expect(kit.json_paths.find(item, ("additionalData", "hmacSignature")), _message(item), secrets)
    if not items:
        scheme.verify(delivery, secrets, now)


def parts(delivery: Delivery) -> list[Delivery]:
    """Return a delivery of each payment, which are signed one by one; any other delivery alone. Raises: Rejected."""
    is_signed_whole = "hmacsignature" in delivery.headers or not _items(delivery)
    return [delivery] if is_signed_whole else _payments.parts(delivery)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return the delivery that Adyen would send: items of payments signed one by one, or any other body as a whole."""
    data = json.loads(body) if b"notificationItems" in body else {}
    for item in kit.json_paths.every(data, _STEPS):
        item["additionalData"] = {"hmacSignature": scheme.signature(_message(item), secret)}
    headers = {"content-type": "application/json"} if data else sign(body, secret, now)
    return Delivery("POST", options.get("url", ""), headers, json.dumps(data).encode() if data else body)


def _message(item: Any) -> bytes:  # noqa: ANN401  whatever Adyen sent
    texts = (kit.json_paths.find_text(item, *steps) for steps in _SIGNED)
    return ":".join(texts).encode("utf-8", "surrogatepass")


sender = kit.Sender(
    proof=("$.notificationItems[*].NotificationRequestItem.additionalData.hmacSignature",),
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=True,
    retry_horizon=kit.days(30),
    identity=kit.told_apart_by(
        " + ".join(f"$.notificationItems[*].NotificationRequestItem.{name}" for name in _TELLING),
        "$.type + $.eventId",
        "$.data.id",
    ),
    accepted=Reply(body=b"[accepted]"),
    parts=parts,
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    mode=kit.mode(
        kit.first("$.environment", kit.whole("$.live")),
        live=(
            "live",
            "true",
        ),
    ),
    setup_url="https://docs.adyen.com/development-resources/webhooks/",
)
