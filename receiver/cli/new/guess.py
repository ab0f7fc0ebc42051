"""What a captured delivery says about its sender: which header signs, how it is spelled, where id and type are.

Names and lengths tell most of it. With the secret the rest is tried out: only what verifies this very delivery
is called found, everything else is a guess and said to be one.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit import Hmac, Timestamp, any_body, instant
from hookonce.providers.kit.crypto.secret_keys import CODECS, Codec
from hookonce.providers.kit.http_file import MASK, Captured

_SIGNATURE: Final = re.compile(r"sign|hmac|(?<![a-z])(sig|hash|digest)(?![a-z])")
_TIME: Final = re.compile(r"timestamp|(?<![a-z])(time|ts|sent-at|date)(?![a-z])")
_ID: Final = re.compile(
    r"(event|delivery|message|msg|webhook|notification|request)-?(id|uuid|guid)\b|-delivery$"
)
_TYPE: Final = re.compile(r"(event|topic|action)(-?(type|name))?$")
_LIST: Final = re.compile(r"\s*([A-Za-z0-9_-]+)=([^,;]+)\s*")
_PREFIX: Final = re.compile(r"((?:[A-Za-z0-9-]+[=:,])?\s*)([A-Za-z0-9+/_=-]+)")
_HASHES: Final = {16: "md5", 20: "sha1", 32: "sha256", 64: "sha512"}
_MAX_DEPTH: Final = 3
_NO_TIME: Final = ("{body}", "{url}{body}", "{method}{url}{body}", "{body}{url}")
_BETWEEN: Final = (".", "", ":", "\n", "|", "-", "_", ",", "&")
_CODECS: Final[list[dict[str, Codec]]] = [{"secret": codec} if codec != "raw" else {} for codec in CODECS]
_IDS: Final = ("id", "event_id", "eventId", "event.id", "uuid", "message_id", "delivery_id", "data.id")
_TYPES: Final = ("type", "event_type", "eventType", "event", "event.type", "topic", "name", "action", "kind")
_TIMES: Final = (
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
    found: whether the secret verifies this delivery, or stands in it
    """

    scheme: str
    arguments: Mapping[str, Any]
    places: Mapping[str, tuple[str, ...]]
    in_headers: Mapping[str, str]
    found: bool = False


def guess(request: Captured, secret: str) -> Guess | None:
    """Return what a delivery shows, None where nothing in it looks like a signature; `secret` may be empty."""
    headers = request.lowered(secret)
    url, path_secret = request.addressed(secret)
    delivery = Delivery(request.method, url, headers, request.body, path_secret)
    places, in_headers = _events(delivery)
    vendors = [
        name for name in ("webhook", "svix") if f"{name}-signature" in headers and f"{name}-id" in headers
    ]
    if vendors:
        known = {"vendors": tuple(vendors)}
        return Guess("StandardWebhooks", known, {**places, "id": ("scheme.id",)}, {}, found=True)
    schemes = list(_schemes(delivery))
    fitting = (scheme for scheme in schemes if secret and _verifies(scheme, delivery, secret))
    found = next(fitting, None)
    in_header = re.search(r"\{header:([^}]+)\}", found.get("signed", "")) if found else None
    if in_header:  # what is signed besides the body is the id
        places, in_headers = {**places, "id": ("header", in_header[1])}, {**in_headers, "id": in_header[1]}
    if found:
        return Guess("Hmac", found, places, in_headers, found=True)
    token = next(_tokens(request, secret), None)
    if token and (secret or not schemes):
        if "field" in token and places["id"] == ("body_digest",):  # a new token is no new event
            places = {**places, "id": ("data_digest", token["field"])}
        return Guess("Token", token, places, in_headers, found=True)
    return Guess("Hmac", schemes[0], places, in_headers) if schemes else None


def _tokens(request: Captured, secret: str) -> Iterator[dict[str, Any]]:
    """Yield the places where something was masked, or where `secret` stands."""
    hidden = [MASK, *([secret] if secret else [])]
    for name, value in request.headers:
        for text in hidden:
            if value.endswith(text):
                prefix = value.removesuffix(text)
                basic = {"basic": True} if prefix.lower() == "basic " else None
                yield basic or {"header": name.lower(), **({"prefix": prefix} if prefix else {})}
    for name, value in parse_qsl(urlsplit(request.url).query):
        if value in hidden:
            yield {"query": name}
    if urlsplit(request.url).path.rpartition("/")[2] in hidden:
        yield {"path": True}
    yield from ({"field": path} for path in _fields(_read(request), secret))


def _fields(data: object, secret: str, at: str = "$", deep: int = 0) -> Iterator[str]:
    """Yield the paths in objects, three deep, at which `secret` stands."""
    for key, value in data.items() if isinstance(data, dict) and deep < _MAX_DEPTH else ():
        path = f"{at}.{key}" if re.fullmatch(r"[^.\[\]]+", key) else f"{at}['{key}']"
        if secret and value == secret and "'" not in key:
            yield path
        yield from _fields(value, secret, path, deep + 1)


def _read(request: Captured) -> object:
    """Return the body, JSON or a form, None for anything else."""
    with suppress(Rejected):
        return any_body(Delivery(request.method, request.url, request.lowered(), request.body))
    return None


def _verifies(scheme: Mapping[str, Any], delivery: Delivery, secret: str) -> bool:
    try:
        Hmac(**scheme).authentic(delivery, [secret])
    except (Rejected, ValueError):
        return False
    return True


def _schemes(delivery: Delivery) -> Iterator[dict[str, Any]]:
    """Everything that could have signed, the likeliest first."""
    names = [name for name in delivery.headers if _SIGNATURE.search(name)]
    places = [
        ({"header": name}, delivery.headers[name])
        for name in sorted(names, key=lambda name: "256" not in name)
    ]
    parameters = parse_qsl(urlsplit(delivery.url).query)
    places += [({"query": name}, value) for name, value in parameters if _SIGNATURE.search(name.lower())]
    for place, value in places:
        for spelled in _readings(place, value):
            for times in _times(spelled, delivery):
                for signed, codec in product(_signed(times, delivery), _CODECS):
                    yield {**spelled, **times, **signed, **codec}


def _readings(place: Mapping[str, str], value: str) -> Iterator[dict[str, Any]]:
    """How the header, or the parameter, holds its signature: in a list under a key, behind a prefix, or bare."""
    pairs = [found for part in re.split("[,;]", value) if (found := _LIST.fullmatch(part))]
    if len(pairs) > 1:
        separator = {} if "," in value else {"separator": ";"}
        for pair in pairs:
            for size in _digest(pair[2].strip()):
                yield {**place, "key": pair[1], **size, **separator}
        return
    plain = _PREFIX.fullmatch(value)
    if plain:
        for prefix, digest in ((plain[1], plain[2]), ("", value)):
            for size in _digest(digest):
                yield {**place, **({"prefix": prefix} if prefix else {}), **size}


def _digest(text: str) -> Iterator[dict[str, str]]:
    """Yield hash and encoding, by length and alphabet; what is the default is left out."""
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
        value = delivery.headers.get(spelled.get("header", ""), "")
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
    """Return where id, type and time are: in the body first, for most senders sign that only."""
    body: Any = None
    with suppress(Rejected):
        body = any_body(delivery)
    places: dict[str, tuple[str, ...]] = {}
    in_headers: dict[str, str] = {}
    for name, paths, headers, otherwise in (
        ("id", _IDS, _ID, ("body_digest",)),
        ("type", _TYPES, _TYPE, ("fixed", "event")),
        ("account", _ACCOUNTS, None, ()),
        ("occurred_at", _TIMES, None, ()),
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
