"""What a captured delivery says about its sender: which header signs, how it is spelled, where id and type are.

Names and lengths tell most of it. With the secret the rest is tried out: only what verifies this very delivery
is called found, everything else is a guess and said to be one.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from providers import Delivery, Rejected
from providers.kit import Hmac, Timestamp, instant
from providers.kit.conformance.captured import MASK, Captured
from providers.kit.keys import CODECS, Codec

_SIGNATURE: Final = re.compile(r"sign|hmac|(?<![a-z])(sig|hash|digest)(?![a-z])")
_TIME: Final = re.compile(r"timestamp|(?<![a-z])(time|ts|sent-at|date)(?![a-z])")
_ID: Final = re.compile(
    r"(event|delivery|message|msg|webhook|notification|request)-?(id|uuid|guid)\b|-delivery$"
)
_TYPE: Final = re.compile(r"(event|topic|action)(-?(type|name))?$")
_LIST: Final = re.compile(r"\s*([A-Za-z0-9_-]+)=([^,;]+)\s*")
_PREFIX: Final = re.compile(r"((?:[A-Za-z0-9-]+[=:,])?\s*)([A-Za-z0-9+/_=-]+)")
_HASHES: Final = {20: "sha1", 32: "sha256", 64: "sha512"}
_NO_TIME: Final = ("{body}", "{url}{body}", "{method}{url}{body}", "{body}{url}")
_BETWEEN: Final = (".", "", ":", "\n", "|", "-", "_", ",", "&")
_CODECS: Final[list[dict[str, Codec]]] = [{"secret": codec} if codec != "raw" else {} for codec in CODECS]
_IDS: Final = ("id", "event_id", "eventId", "event.id", "uuid", "message_id", "delivery_id", "data.id")
_TYPES: Final = ("type", "event_type", "eventType", "event", "event.type", "topic", "name", "action", "kind")
_MOMENTS: Final = (
    "created_at",
    "createdAt",
    "created",
    "timestamp",
    "occurred_at",
    "time",
    "event.date_created",
)
_ACCOUNTS: Final = (
    *("account_id", "accountId", "organization_id", "organizationId", "event.organization_id", "tenant_id"),
    *("workspace_id", "team_id", "merchant_id", "account", "shop"),
)


@dataclass(frozen=True)
class Guess:
    """What is known: a scheme with its arguments, places as (function, argument), and if the scheme verified.

    in_headers: names of headers that hold the id, or the type
    """

    scheme: str
    arguments: Mapping[str, Any]
    places: Mapping[str, tuple[str, ...]]
    in_headers: Mapping[str, str]
    found: bool = False


def guess(request: Captured, secret: str) -> Guess | None:
    """Say what can be told of a delivery, None where nothing in it looks like a signature; `secret` may be empty."""
    headers = request.lowered(secret)
    delivery = Delivery(request.method, request.url, headers, request.body)
    places, in_headers = _events(delivery)
    vendors = [
        name for name in ("webhook", "svix") if f"{name}-signature" in headers and f"{name}-id" in headers
    ]
    if vendors:
        known = {"vendors": tuple(vendors)}
        return Guess("StandardWebhooks", known, {**places, "id": ("scheme.id",)}, {})
    schemes = list(_schemes(delivery))
    fitting = (scheme for scheme in schemes if secret and _verifies(scheme, delivery, secret))
    found = next(fitting, None)
    in_header = re.search(r"\{header:([^}]+)\}", found.get("signed", "")) if found else None
    if in_header:  # what is signed besides the body is the id
        places, in_headers = {**places, "id": ("header", in_header[1])}, {**in_headers, "id": in_header[1]}
    if found or schemes:
        return Guess("Hmac", found or schemes[0], places, in_headers, found=found is not None)
    masked = next(((name.lower(), value) for name, value in request.headers if MASK in value), None)
    return Guess("Token", _token(*masked), places, in_headers) if masked else None


def _token(name: str, value: str) -> dict[str, Any]:
    prefix = value.partition(MASK)[0]
    if prefix.lower() == "basic ":
        return {"basic": True}
    return {"header": name, **({"prefix": prefix} if prefix else {})}


def _verifies(scheme: Mapping[str, Any], delivery: Delivery, secret: str) -> bool:
    try:
        Hmac(**scheme).authentic(delivery, [secret])
    except (Rejected, ValueError):
        return False
    return True


def _schemes(delivery: Delivery) -> Iterator[dict[str, Any]]:
    """Everything that could have signed, the likeliest first."""
    names = [name for name in delivery.headers if _SIGNATURE.search(name)]
    for header in sorted(names, key=lambda name: "256" not in name):
        for spelled in _spelled(header, delivery.headers[header]):
            for times in _times(spelled, delivery):
                for signed, codec in product(_signed(times, delivery), _CODECS):
                    yield {**spelled, **times, **signed, **codec}


def _spelled(header: str, value: str) -> Iterator[dict[str, Any]]:
    """How the header holds its signature: in a list under a key, behind a prefix, or bare."""
    pairs = [found for part in re.split("[,;]", value) if (found := _LIST.fullmatch(part))]
    if len(pairs) > 1:
        separator = {} if "," in value else {"separator": ";"}
        for pair in pairs:
            for size in _digest(pair[2].strip()):
                yield {"header": header, "key": pair[1], **size, **separator}
        return
    plain = _PREFIX.fullmatch(value)
    if plain:
        for prefix, digest in ((plain[1], plain[2]), ("", value)):
            for size in _digest(digest):
                yield {"header": header, **({"prefix": prefix} if prefix else {}), **size}


def _digest(text: str) -> Iterator[dict[str, str]]:
    """Say hash and encoding, by length and alphabet; what is the default is left out."""
    size = len(text) // 2 if re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", text) else 0
    encoding = "hex"
    if size not in _HASHES:
        encoding = "base64url" if set("-_") & set(text) else "base64"
        with suppress(ValueError):
            size = len(b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if encoding[6:] else None))
    if size in _HASHES:
        hashed = {} if size == 32 else {"hash": _HASHES[size]}  # noqa: PLR2004  SHA-256, the default
        yield {**hashed, **({} if encoding == "hex" else {"encoding": encoding})}


def _times(spelled: Mapping[str, Any], delivery: Delivery) -> Iterator[dict[str, Any]]:
    """The signed times there could be, and at last none."""
    if "key" in spelled:
        value = delivery.headers[spelled["header"]]
        for pair in filter(None, map(_LIST.fullmatch, re.split("[,;]", value))):
            if pair[1] != spelled["key"] and instant(pair[2].strip()):
                yield {"timestamp": _timestamp("key", pair[1], pair[2].strip())}
    for name, value in delivery.headers.items():
        if _TIME.search(name) and instant(value):
            yield {"timestamp": _timestamp("header", name, value)}
    yield {}


def _timestamp(where: str, name: str, value: str) -> Timestamp:
    unit = "iso" if not value.isdigit() else "ms" if len(value) > 11 else "s"  # noqa: PLR2004  digits of ms
    return Timestamp(**{where: name}, **({"unit": unit} if unit != "s" else {}))  # type: ignore[arg-type]


def _signed(times: Mapping[str, Any], delivery: Delivery) -> Iterator[dict[str, str]]:
    """The texts that could be signed; what is the default is left out."""
    ids = [f"{{header:{name}}}" for name in delivery.headers if _ID.search(name)]
    if not times:
        yield {}
        extra = [f"{name}{mark}{{body}}" for name in ids for mark in _BETWEEN]
        yield from ({"signed": text} for text in (*_NO_TIME[1:], *extra))
        return
    for mark in _BETWEEN:
        parts = ["{timestamp}", "{body}"]
        texts = [parts, parts[::-1], *(["v0", *parts], ["v1", *parts]), *([name, *parts] for name in ids)]
        texts += [["{url}", *parts], ["{timestamp}", "{method}", "{url}", "{body}"]]
        yield from ({"signed": mark.join(each)} for each in texts)


def _events(delivery: Delivery) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Say where id, type and time are: in the body first, for most senders sign that only."""
    body: Any = None
    with suppress(ValueError, RecursionError):
        body = json.loads(delivery.body)
    places: dict[str, tuple[str, ...]] = {}
    in_headers: dict[str, str] = {}
    for name, paths, headers, otherwise in (
        ("id", _IDS, _ID, ("body_digest",)),
        ("type", _TYPES, _TYPE, ("fixed", "event")),
        ("account", _ACCOUNTS, None, ()),
        ("occurred_at", _MOMENTS, None, ()),
    ):
        path = _first(body, paths)
        header = next((each for each in delivery.headers if headers and headers.search(each)), "")
        if path:
            places[name] = ("field", path)
        elif header:
            places[name], in_headers[name] = ("header", header), header
        elif otherwise:
            places[name] = otherwise
    return places, in_headers


def _first(body: object, paths: tuple[str, ...]) -> str:
    for path in paths:
        value = body
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return f"$.{path}"
    return ""
