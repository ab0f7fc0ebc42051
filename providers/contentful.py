"""Contentful signs method, path, chosen headers and body, a line each, with HMAC-SHA256 in hex.

`x-contentful-signed-headers` names the headers; the time (in ms) and that list itself always count as signed. The
path is the URL's with its query, encoded over again, as in Contentful's SDK, which also gives the 30 seconds that the
time may be off. The secret has 64 characters. The id is the idempotency key if that header is signed, else the topic,
the entry and its revision, of another environment than `master` that too, as the copies of an entry have one id. The
type is the topic, `ContentManagement.Entry.publish`.

https://www.contentful.com/developers/docs/webhooks/request-verification/
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Unpack

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    FAILURES,
    EventView,
    Extractor,
    Hmac,
    Sender,
    SignOptions,
    Timestamp,
    any_body,
    body_digest,
    canonical_request,
    field,
    first,
    header,
    header_of,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

_LIST = "x-contentful-signed-headers"
_KEY = "x-contentful-idempotency-key"
_scheme = Hmac(header="x-contentful-signature")
_stamp = Timestamp(header="x-contentful-timestamp", unit="ms", tolerance=timedelta(seconds=30))
_SIGNED: Final = {_LIST, _stamp.header}


def _key(view: EventView) -> object:
    headers = view.delivery.headers
    return (
        headers.get(_KEY) if _LIST in headers and _KEY in canonical_request.names_in(headers, _LIST) else None
    )


_topic = header("x-contentful-topic")
_entry = field("$.sys.id")
_number = field("$.sys.revision")
_time = field("$.sys.updatedAt")
_environment = field("$.sys.environment.sys.id")
_version = first(_number, _time)
events = one_event(
    id=first(
        Extractor(_key, "the signed key"),
        when_matches(_environment, "(?!master$).+", join(_topic, _environment, _entry, _version)),
        join(_topic, _entry, _version),
        body_digest(),
    ),
    former=(
        first(Extractor(_key, "the signed key"), join(_topic, _entry, _number), join(_topic, _entry, _time)),
    ),
    type=_topic,
    account=field("$.sys.space.sys.id"),
    occurred_at=_time,
    read=any_body,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets`. Raises: Rejected."""
    stamp = header_of(delivery.headers, (_stamp.header,))[1]
    message = canonical_request.canonical(
        delivery, canonical_request.names_in(delivery.headers, _LIST) | _SIGNED
    )
    _scheme.verify(replace(delivery, body=message), secrets, now)
    _stamp.check(_stamp.parse(stamp), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what has not 64 characters."""
    if len(secret.strip()) != 64:  # noqa: PLR2004
        raise ValueError("the secret is not usable; expected the 64 characters that Contentful made")


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    besides = {name: text for name, text in options.get("headers", {}).items() if name != "content-type"}
    headers = besides | {_stamp.header: _stamp.write(now)}
    headers[_LIST] = ",".join(sorted({*headers, _LIST}))
    delivery = Delivery(options.get("method", "POST"), options.get("url", ""), headers, body)
    return headers | _scheme.sign(canonical_request.canonical(delivery, headers), secret, now)


sign = signer(_sign, event_id=_KEY, type="x-contentful-topic", default_type="ContentManagement.Entry.publish")

sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=1),
    retries_on=FAILURES,
    identity=told_apart_by(
        "header x-contentful-idempotency-key",
        "header x-contentful-topic + $.sys.id + $.sys.revision",
        "header x-contentful-topic + $.sys.id + $.sys.updatedAt",
    ),
    tolerance=_stamp.tolerance,
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    check_secret=check_secret,
    setup_url="https://app.contentful.com/deeplink?link=webhooks",
)
