"""Adyen signs eight fields of each payment notification, or the whole body of others; HMAC-SHA256, in base64.

Of a payment notification the signature is in the item, over its fields joined by colons, without any escaping
(as Adyen's SDKs do); amount, references and outcome are covered, the rest is not. Banking, platform and
management webhooks have `HmacSignature` over the body. The secret is the HMAC key, in hex. Payments have no id:
Adyen says to tell them by event code and PSP reference. A resource of the platform is in many events, so only
the one of its creation has the resource's id alone. The answer is `[accepted]`; without it Adyen holds back all
that follows, and comes again for up to 30 days.

https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from providers import Delivery, Event, Reply
from providers.kit import Hmac, Said, body_digest, digest, field, first, fixed, joined, json_body, signer
from providers.kit.events import many_events, one_event
from providers.kit.fields import only_if

scheme = Hmac(header="hmacsignature", encoding="base64", secret="hex")  # noqa: S106  a codec's name
CHECK, sign = scheme.check_secret, signer(scheme.sign)
ACCEPTED = Reply(body=b"[accepted]")
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=30)
SETUP = "https://docs.adyen.com/development-resources/webhooks/"
_payments = many_events(
    items="$.notificationItems[*].NotificationRequestItem",
    id=first(joined(field("$.eventCode"), field("$.pspReference")), digest(field("$"))),
    type=field("$.eventCode"),
    account=field("$.merchantAccountCode"),
    occurred_at=field("$.eventDate"),
)
_id, _type, _time = field("$.data.id"), field("$.type"), first(field("$.timestamp"), field("$.createdAt"))
_others = one_event(
    id=first(
        only_if(_type, r".*\.created", _id), joined(_id, _type, _time), joined(_id, _type), body_digest()
    ),
    type=first(_type, fixed("unknown")),
    account=first(field("$.data.balancePlatform"), field("$.data.merchantId"), field("$.data.companyId")),
    occurred_at=_time,
)
sample = _others.sample


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the signature over its body, or by those of all of its items. Raises: Rejected."""
    items = [] if "hmacsignature" in delivery.headers else _items(json_body(delivery))
    for item in items:
        additional = item.get("additionalData")
        given = additional.get("hmacSignature") if isinstance(additional, dict) else None
        scheme.expect(given, _message(item), secrets)
    if not items:
        scheme.verify(delivery, secrets, now)


def events(delivery: Delivery) -> list[Event]:
    """The events of a verified `delivery`. Raises: Rejected(bad_body)."""
    return _payments(delivery) if _items(json_body(delivery)) else _others(delivery)


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Adyen would send: items of payments signed one by one, or any other body as a whole."""
    data = json.loads(body) if b"notificationItems" in body else {}
    for item in _items(data):
        item["additionalData"] = {"hmacSignature": scheme.signature(_message(item), secret)}
    headers = {"content-type": "application/json"} if data else sign(body, secret, now)
    return Delivery("POST", said.get("url", ""), headers, json.dumps(data).encode() if data else body)


def _items(data: Any) -> list[dict[str, Any]]:  # noqa: ANN401  whatever Adyen sent
    listed = data.get("notificationItems") if isinstance(data, dict) else None
    found = [each.get("NotificationRequestItem") for each in listed or () if isinstance(each, dict)]
    return [item if isinstance(item, dict) else {} for item in found]


def _message(item: dict[str, Any]) -> bytes:
    names = ("pspReference", "originalReference", "merchantAccountCode", "merchantReference")
    amount = item.get("amount")
    amount = amount if isinstance(amount, dict) else {}
    values = [item.get(name) for name in names] + [amount.get("value"), amount.get("currency")]
    values += [item.get("eventCode"), item.get("success")]
    texts = (str(value) if isinstance(value, (str, int)) else "" for value in values)
    return ":".join(texts).encode("utf-8", "surrogatepass")
