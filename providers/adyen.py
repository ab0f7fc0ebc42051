"""Adyen signs eight fields of each payment notification, or the whole body of others; HMAC-SHA256, in base64.

Of a payment (choose JSON) the signature is in the item, over fields joined by colons without escaping, as in Adyen's
SDKs: amount, references and outcome are covered, the rest is not. Platform and management webhooks have `HmacSignature`
over the body. The secret is the HMAC key, in hex. Payments are told by event code and PSP reference; a platform's
resource by its id when created, later with type and time; a token by `eventId`. The answer is `[accepted]`.

https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from providers import Delivery, Reply
from providers.kit import Hmac, Said, json_body, paths, signer
from providers.kit.events import either, many_events, one_event
from providers.kit.fields import body_digest, digest, field, first, fixed, joined, only_if

scheme = Hmac(header="hmacsignature", encoding="base64", secret="hex")  # noqa: S106  a codec's name
CHECK, sign = scheme.check_secret, signer(scheme.sign)
ACCEPTED = Reply(body=b"[accepted]")
BODY_IS_UNSIGNED = True
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
RETRY_HORIZON = timedelta(days=30)
SETUP = "https://docs.adyen.com/development-resources/webhooks/"
_ITEMS = "$.notificationItems[*].NotificationRequestItem"
_STEPS = paths.parse(_ITEMS)
_PARTS = "pspReference originalReference merchantAccountCode merchantReference amount.value amount.currency"
_SIGNED = [paths.parse(f"$.{part}") for part in f"{_PARTS} eventCode success".split()]
_payments = many_events(
    items=_ITEMS,
    id=first(joined(field("$.eventCode"), field("$.pspReference")), digest(field("$"))),
    type=field("$.eventCode"),
    account=field("$.merchantAccountCode"),
    occurred_at=field("$.eventDate"),
)
_id, _type, _time = field("$.data.id"), field("$.type"), first(field("$.timestamp"), field("$.createdAt"))
_others = one_event(
    id=first(
        joined(_type, field("$.eventId")),
        only_if(_type, r".*\.created", _id),
        joined(_id, _type, _time),
        joined(_id, _type),
        body_digest(),
    ),
    type=first(_type, fixed("unknown")),
    account=first(field("$.data.balancePlatform"), field("$.data.merchantId"), field("$.data.companyId")),
    occurred_at=_time,
)
events = either(_others, _payments, when=lambda delivery: bool(paths.every(json_body(delivery), _STEPS)))


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the signature over its body, or by those of all of its items. Raises: Rejected."""
    items = [] if "hmacsignature" in delivery.headers else paths.every(json_body(delivery), _STEPS)
    for item in items:
        scheme.expect(paths.find(item, ("additionalData", "hmacSignature")), _message(item), secrets)
    if not items:
        scheme.verify(delivery, secrets, now)


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Adyen would send: items of payments signed one by one, or any other body as a whole."""
    data = json.loads(body) if b"notificationItems" in body else {}
    for item in paths.every(data, _STEPS):
        item["additionalData"] = {"hmacSignature": scheme.signature(_message(item), secret)}
    headers = {"content-type": "application/json"} if data else sign(body, secret, now)
    return Delivery("POST", said.get("url", ""), headers, json.dumps(data).encode() if data else body)


def _message(item: Any) -> bytes:  # noqa: ANN401  whatever Adyen sent
    values = (paths.find(item, steps) for steps in _SIGNED)
    texts = (str(value) if isinstance(value, (str, int)) else "" for value in values)
    return ":".join(texts).encode("utf-8", "surrogatepass")
