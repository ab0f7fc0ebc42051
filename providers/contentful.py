"""Contentful signs method, path, chosen headers and body, a line each, with HMAC-SHA256 in hex.

`x-contentful-signed-headers` names the headers; the time (in ms) and that list itself always count as signed. The
path is the URL's with its query, encoded over again, as in Contentful's SDK, which also gives the 30 seconds that the
time may be off. The secret has 64 characters. The id is the idempotency key if that header is signed, else the topic,
the entry and its revision; outside of `master` also the environment, as the copies of an entry share its id. The type
is the topic, `ContentManagement.Entry.publish`.

https://www.contentful.com/developers/docs/webhooks/request-verification/
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Unpack

from hookonce.providers import Delivery, kit

_LIST = "x-contentful-signed-headers"
_KEY = "x-contentful-idempotency-key"
_scheme = kit.Hmac(header="x-contentful-signature")
_stamp = kit.Timestamp(header="x-contentful-timestamp", unit="ms", tolerance=kit.seconds(30))
_SIGNED: Final = {_LIST, _stamp.header}


def _key(view: kit.EventView) -> object:
    headers = view.delivery.headers
    return (
        headers.get(_KEY)
        if _LIST in headers and _KEY in kit.canonical_request.names_in(headers, _LIST)
        else None
    )


_topic = kit.header("x-contentful-topic")
_entry = kit.field("$.sys.id")
_number = kit.field("$.sys.revision")
_time = kit.field("$.sys.updatedAt")
_environment = kit.field("$.sys.environment.sys.id")
_version = kit.first(_number, _time)
events = kit.one_event(
    id=kit.or_body(
        kit.Extractor(_key, "the signed key"),
        kit.when_matches(_environment, "(?!master$).+", kit.join(_topic, _environment, _entry, _version)),
        kit.join(_topic, _entry, _version),
    ),
    type=_topic,
    account="$.sys.space.sys.id",
    occurred_at=_time,
    read=kit.any_body,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets`. Raises: Rejected."""
    stamp = kit.header_of(delivery.headers, (_stamp.header,))[1]
    message = kit.canonical_request.canonical(
        delivery, kit.canonical_request.names_in(delivery.headers, _LIST) | _SIGNED
    )
    _scheme.verify(replace(delivery, body=message), secrets, now)
    _stamp.check(_stamp.parse(stamp), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what has not 64 characters."""
    if len(secret.strip()) != 64:  # noqa: PLR2004
        raise ValueError("the secret is not usable; expected the 64 characters that Contentful made")


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    besides = {name: text for name, text in options.get("headers", {}).items() if name != "content-type"}
    headers = besides | {_stamp.header: _stamp.write(now)}
    headers[_LIST] = ",".join(sorted({*headers, _LIST}))
    delivery = Delivery(options.get("method", "POST"), options.get("url", ""), headers, body)
    return headers | _scheme.sign(kit.canonical_request.canonical(delivery, headers), secret, now)


sign = kit.signer(
    _sign, event_id=_KEY, type="x-contentful-topic", default_type="ContentManagement.Entry.publish"
)
sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(1),
    retries_on=kit.FAILURES,
    identity=kit.told_apart_by(
        "header x-contentful-idempotency-key",
        "header x-contentful-topic + $.sys.id + $.sys.revision",
        "header x-contentful-topic + $.sys.id + $.sys.updatedAt",
    ),
    tolerance=_stamp.tolerance,
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    setup_url="https://app.contentful.com/deeplink?link=webhooks",
)
