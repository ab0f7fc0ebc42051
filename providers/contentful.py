"""Contentful signs method, path, chosen headers and body, a line each, with HMAC-SHA256 in hex.

`x-contentful-signed-headers` names the headers; the time (in ms) and that list itself always count as signed.
The path is the URL's with its query, encoded over again, as in Contentful's SDK, which also gives the 30 seconds
that the time may be off. The secret has 64 characters. The id is the idempotency key if that header is signed,
else the topic, the entry and its revision. The type is the topic, `ContentManagement.Entry.publish`.

https://www.contentful.com/developers/docs/webhooks/request-verification/
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Unpack

from providers import Delivery
from providers.kit import Hmac, Said, Timestamp, View, any_body, one_event, signer
from providers.kit.canonical import canonical, names_in
from providers.kit.fields import Pick, body_digest, field, first, header, joined
from providers.kit.reading import header_of

_LIST, _KEY = "x-contentful-signed-headers", "x-contentful-idempotency-key"
_scheme = Hmac(header="x-contentful-signature")
_stamp = Timestamp(header="x-contentful-timestamp", unit="ms", tolerance=timedelta(seconds=30))
_SIGNED: Final = {_LIST, _stamp.header}
METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
TOLERANCE = _stamp.tolerance
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.contentful.com/deeplink?link=webhooks"


def _key(view: View) -> object:
    headers = view.delivery.headers
    return headers.get(_KEY) if _LIST in headers and _KEY in names_in(headers, _LIST) else None


_topic, _entry = header("x-contentful-topic"), field("$.sys.id")
_number, _time = field("$.sys.revision"), field("$.sys.updatedAt")
events = one_event(
    id=first(
        Pick(_key, "the signed key"),
        joined(_topic, _entry, _number),
        joined(_topic, _entry, _time),
        body_digest(),
    ),
    type=_topic,
    account=field("$.sys.space.sys.id"),
    occurred_at=_time,
    read=any_body,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets`. Raises: Rejected."""
    stamp = header_of(delivery.headers, (_stamp.header,))[1]
    message = canonical(delivery, names_in(delivery.headers, _LIST) | _SIGNED)
    _scheme.verify(replace(delivery, body=message), secrets, now)
    _stamp.check(_stamp.parse(stamp), now)


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError for what has not 64 characters."""
    if len(secret.strip()) != 64:  # noqa: PLR2004
        raise ValueError("the secret is not usable; expected the 64 characters that Contentful made")


def _sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
    besides = {name: text for name, text in said.get("headers", {}).items() if name != "content-type"}
    headers = besides | {_stamp.header: _stamp.write(now)}
    headers[_LIST] = ",".join(sorted({*headers, _LIST}))
    delivery = Delivery(said.get("method", "POST"), said.get("url", ""), headers, body)
    return headers | _scheme.sign(canonical(delivery, headers), secret, now)


sign = signer(_sign, event_id=_KEY, type="x-contentful-topic", default_type="ContentManagement.Entry.publish")
