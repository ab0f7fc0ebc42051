"""Guesses a sender's scheme from a captured delivery: which header signs, how it is spelled, where id and type are.

Names and lengths tell most of it. With the secret the rest is tried out: only what verifies this very delivery
is called found, everything else is a guess and said to be one.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from itertools import chain, permutations, product
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit import Hmac, Timestamp, any_body, instant
from hookonce.providers.kit.crypto import jws
from hookonce.providers.kit.crypto.public_keys import Algorithm, algorithms_of, is_public_key
from hookonce.providers.kit.crypto.secret_keys import CODECS, Codec, key_of
from hookonce.providers.kit.http_file import MASK, TOKEN_MASK, Captured
from hookonce.providers.kit.schemes.public_key_signature import Signed
from hookonce.providers.kit.signing.header_lists import unquoted
from hookonce.receiver.cli.capture.shapes import (
    body_hashes,
    bytes_of,
    hash_of_body,
    key_pair_algorithms,
    texts_in,
    texts_of,
    token_in,
)

_SIGNATURE: Final = re.compile(r"sign|hmac|(?<![a-z])(sig|hash|digest)(?![a-z])")
_TIME: Final = re.compile(r"timestamp|(?<![a-z])(time|ts|sent-at|date)(?![a-z])")
_UNIX: Final = re.compile(r"1[0-9]{9}(?:[0-9]{3})?")
"""A time in s or ms, whatever its header is called."""
_ID: Final = re.compile(
    r"(event|delivery|message|msg|webhook|notification|request)-?(id|uuid|guid)\b|-delivery$"
)
_ANY_ID: Final = re.compile(r"-(id|uuid|guid)$")
"""Names of headers that may be signed besides the body, more than those that hold an event's id."""
_ID_LIKE: Final = re.compile(r"(?=.*[0-9])[!-~]{6,200}")
"""A value that may be an id, whatever its header is called."""
_TYPE: Final = re.compile(r"(event|topic|action)(-?(type|name))?$")
_LIST: Final = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9-]* +)?([A-Za-z0-9_-]+)=([^,;]+?)\s*")
_SIGNED_HEADERS: Final = re.compile(r'(?<![a-z])headers="([^"]+)"')
_PREFIX: Final = re.compile(r"((?:[A-Za-z0-9-]+(?:[=:,]|(?=\s)))?\s*)([A-Za-z0-9+/_=-]+)")
_HASHES: Final = {16: "md5", 20: "sha1", 32: "sha256", 64: "sha512"}
_BODIES: Final = ("{body}", "{sha256}", "{sha256:base64}", "{sha256:raw}")
_BESIDES: Final[tuple[tuple[str, ...], ...]] = (
    (),
    *(("{url}",), ("{path}",), ("{method}", "{url}"), ("{method}", "{path}"), ("v0",), ("v1",)),
)
"""Parts of a request that senders sign with its body and time."""
_BETWEEN: Final = (".", "", ":", "\n", "|", "-", "_", ",", "&")
_IDS: Final = (
    *("id", "event_id", "event.id", "event.uid", "uuid", "uid", "message_id", "delivery_id"),
    *("meta.id", "jti", "data.id"),
)
_TYPES: Final = (
    "type",
    "event_type",
    "event",
    "event.type",
    "event.kind",
    "event.name",
    "topic",
    "name",
    "action",
    "kind",
)
_TIMES: Final = (
    "created_at",
    "created",
    "timestamp",
    "occurred_at",
    "time",
    "event.date_created",
    "event.at",
    "sent_at",
    "at",
)
_ACCOUNTS: Final = (
    *("account_id", "organization_id", "event.organization_id", "tenant_id"),
    *("workspace_id", "team_id", "merchant_id", "account", "shop", "tenant", "org", "org_id"),
    *("account.id", "organization.id", "tenant.id", "workspace.id"),
)

_OWN_IDS: Final = ("id", "event_id", "uuid", "uid")
_OWN_TYPES: Final = ("type", "event_type", "kind", "topic")


@dataclass(frozen=True)
class Guess:
    """A guess: a scheme with its arguments, places as (function, argument), and if the scheme verified.

    in_headers: names of headers that hold the id, or the type
    found: whether the secret verifies this delivery, or stands in it
    """

    scheme: str
    arguments: Mapping[str, Any]
    places: Mapping[str, tuple[str, ...]]
    in_headers: Mapping[str, str]
    found: bool = False

    @property
    def own(self) -> dict[str, Any]:
        """The arguments of the scheme itself; of the sender it is declared that the body is unsigned."""
        return {name: value for name, value in self.arguments.items() if name != "body_is_unsigned"}


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
    if token := _signed_token(delivery, secret):
        return _of_token(token, delivery, places, in_headers, secret)
    schemes, by_key_pair = list(_schemes(delivery, secret)), list(_key_pair_schemes(delivery, secret))
    tries = ((Signed, by_key_pair),) if is_public_key(secret) else ((Hmac, schemes), (Signed, by_key_pair))
    for scheme, tried in tries:
        found = next((each for each in tried if secret and _verifies(scheme, each, delivery, secret)), None)
        if found:
            return Guess(
                scheme.__name__, found, *_with_signed_id(found, delivery, places, in_headers), found=True
            )
    shared = next(_tokens(request, secret), None)
    if shared and (secret or not schemes):
        if "field" in shared and places["id"] == ("body_digest",):  # a new token is no new event
            places = {**places, "id": ("data_digest", shared["field"])}
        return Guess("Token", shared, places, in_headers, found=True)
    is_pair = by_key_pair and not (schemes and _is_called_hmac(schemes[0]))
    likeliest = next(iter(by_key_pair if is_pair else schemes), None)
    return Guess("Signed" if is_pair else "Hmac", likeliest, places, in_headers) if likeliest else None


def _with_signed_id(
    scheme: Mapping[str, Any],
    delivery: Delivery,
    places: dict[str, tuple[str, ...]],
    in_headers: dict[str, str],
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the places with the id in the header that is signed besides the body, if there is one."""
    signed = re.findall(r"\{header:([^}]+)\}", scheme.get("signed", ""))
    named = [name for name in signed if _ANY_ID.search(name)]
    if len(signed) == 1 and signed[0] != "host" and _ID_LIKE.fullmatch(delivery.headers[signed[0]]):
        named = signed
    if not named:
        return places, in_headers
    return {**places, "id": ("header", named[0])}, {**in_headers, "id": named[0]}


def _is_called_hmac(scheme: Mapping[str, Any]) -> bool:
    """Whether a signature as long as one of Ed25519 says that it is none, or cannot be one."""
    said = " ".join([str(scheme.get("header", "")), scheme.get("prefix", ""), scheme.get("key", "")]).lower()
    return scheme.get("hash") != "sha512" or "hmac" in said or "512" in said


def _signed_token(delivery: Delivery, secret: str) -> tuple[dict[str, Any], jws.Token] | None:
    """Return where a signed token is, as arguments of `Jwt`, and the token."""
    for name, value in delivery.headers.items():
        prefix = "Bearer " if value[:7].lower() == "bearer " else ""
        text = value[len(prefix) :]
        if (token := token_in(text, delivery.body)) and text != secret:
            where = {"header": name} | ({"prefix": prefix} if prefix else {})
            return where | ({"detached": True} if token.claims is token.header else {}), token
    text = delivery.body.decode("latin-1")
    if token := token_in(text):
        return {"header": ""}, token
    for path, value in texts_in(delivery.body):
        if token := token_in(value):
            return {"header": "", "field": path}, token
    return None


def _of_token(
    known: tuple[dict[str, Any], jws.Token],
    delivery: Delivery,
    places: Mapping[str, tuple[str, ...]],
    in_headers: Mapping[str, str],
    secret: str,
) -> Guess:
    """Return what a token shows: who may have signed it, what it says of the body, and which times it has."""
    where, token = known
    alg = str(token.header.get("alg"))
    arguments: dict[str, Any] = {**where, "algorithms": (alg,)}
    hashed = (
        next(body_hashes(token, delivery.body), None)
        if where["header"] and not where.get("detached")
        else None
    )
    if hashed:
        claim, encoding, name = hashed
        arguments |= {"body_hash": (claim, encoding), **({} if name == "sha256" else {"hash": name})}
    elif where["header"] and not where.get("detached"):
        arguments["body_is_unsigned"] = True
    issuer = token.claims.get("iss")
    arguments |= {"issuers": (issuer,)} if isinstance(issuer, str) and issuer else {}
    audience = token.claims.get("aud")
    arguments |= {"audiences": (audience,)} if isinstance(audience, str) and audience else {}
    needs = tuple(name for name in ("exp", "iat") if isinstance(token.claims.get(name), int))[:1]
    arguments["needs"] = needs
    arguments |= {"max_age": timedelta(minutes=5)} if needs == ("iat",) else {}
    arguments["leeway"] = timedelta(minutes=1)
    if not where["header"]:
        places, in_headers = _places(token.claims, delivery.headers)
        if places["id"] == ("body_digest",):
            again = ("$.exp", "$.nbf", "$.iat", "$.jti")
            places = {**places, "id": ("data_digest", *again)}
    return Guess("Jwt", arguments, places, in_headers, found=bool(secret) and _signs(alg, token, secret))


def _signs(alg: str, token: jws.Token, secret: str) -> bool:
    algorithm = next((name for name in jws.ALGS if name == alg), None)
    if algorithm is None:
        return False
    with suppress(ValueError, Rejected):
        keys: Sequence[jws.Key]
        if jws.is_shared(algorithm):
            keys = [jws.verifying_key(secret, "raw", algorithm)]
        else:
            keys = jws.known_keys(jws.KeySource((secret,)), token.header.get("kid"), algorithm)
        return jws.is_signed(token, keys, (algorithm,))
    return False


def _key_pair_schemes(delivery: Delivery, secret: str) -> Iterator[dict[str, Any]]:
    """Everything that a key pair could have signed, the likeliest first; `secret` is its public key, if known."""
    known = _algorithms(secret) if secret else ()
    for name in delivery.headers:
        value = delivery.headers[name]
        if not known and not _may_sign(name, delivery):
            continue
        for spelled, text in _spellings({"header": name}, value):
            for encoding, raw in bytes_of(text):
                told = spelled if encoding == "base64" else {**spelled, "encoding": encoding}
                for algorithm, form in key_pair_algorithms(raw):
                    if known and algorithm not in known:
                        continue
                    formed = told if form == "der" else {**told, "form": form}
                    for times in _times(formed, delivery):
                        for signed, hashed in product(
                            _signed(times, delivery), ({}, {"hashed_by": "sha256"})
                        ):
                            yield {"algorithm": algorithm, **formed, **times, **signed, **hashed}


def _algorithms(secret: str) -> tuple[Algorithm, ...]:
    """Return what a public key, or the first usable one of a JWK set, may verify."""
    if own := algorithms_of(secret):
        return own
    return tuple(
        algorithm
        for alg in jws.ALGS
        if (algorithm := jws.algorithm_of(alg)) and not _complains(jws.expect_keys, secret, (alg,))
    )


def _complains(check: Callable[..., object], *arguments: object) -> bool:
    try:
        check(*arguments)
    except ValueError:
        return True
    return False


def _spellings(place: Mapping[str, str], value: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield how a header or parameter may hold its signature (in a list, behind a prefix, bare), and the signature."""
    separator = {} if "," in value or ";" not in value else {"separator": ";"}
    yield from (({**place, "key": key, **separator}, text) for key, text in _pairs(value))
    if plain := _PREFIX.fullmatch(value):
        if plain[1]:
            yield {**place, "prefix": plain[1]}, plain[2]
        yield dict(place), value


def _pairs(value: str) -> list[tuple[str, str]]:
    """Return the pairs of a header that is a list of them, without quotes; one alone is a list if it has quotes."""
    found = [pair for part in re.split("[,;]", value) if (pair := _LIST.fullmatch(part))]
    return [(pair[1], unquoted(pair[2])) for pair in found] if len(found) > 1 or '"' in value else []


def _tokens(request: Captured, secret: str) -> Iterator[dict[str, Any]]:
    """Yield the places where something was masked, or where `secret` stands."""
    hidden = [MASK, *([secret] if secret else []), *([TOKEN_MASK] if token_in(secret) else [])]
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
    with suppress(Rejected):
        body = any_body(Delivery(request.method, request.url, request.lowered(), request.body))
        yield from ({"field": path} for path, text in texts_of(body) if secret and text == secret)


def _verifies(
    kind: type[Hmac] | type[Signed], scheme: Mapping[str, Any], delivery: Delivery, secret: str
) -> bool:
    try:
        kind(**scheme).authentic(delivery, [secret])
    except (Rejected, ValueError):
        return False
    return True


def _schemes(delivery: Delivery, secret: str) -> Iterator[dict[str, Any]]:
    """Everything that could have signed with `secret`, if known, the likeliest first."""
    readable = [codec for codec in CODECS if not secret or not _complains(key_of, secret, codec)]
    codecs: list[dict[str, Codec]] = [{"secret": codec} if codec != "raw" else {} for codec in readable]
    names = [name for name in delivery.headers if _may_sign(name, delivery)]
    places = [
        ({"header": name}, delivery.headers[name])
        for name in sorted(names, key=lambda name: "256" not in name)
    ]
    parameters = parse_qsl(urlsplit(delivery.url).query)
    places += [({"query": name}, value) for name, value in parameters if _SIGNATURE.search(name.lower())]
    for place, value in places:
        for where, text in _spellings(place, value):
            for spelled in ({**where, **size} for size in _digest(text)):
                for times in _times(spelled, delivery):
                    for signed, codec in product(_signed(times, delivery), codecs):
                        yield {**spelled, **times, **signed, **codec}


def _may_sign(name: str, delivery: Delivery) -> bool:
    """Whether a header, or a pair in it, is called a signature, and is not just the hash of the body."""
    value = delivery.headers[name]
    called = any(_SIGNATURE.search(each.lower()) for each in (name, *(key for key, _ in _pairs(value))))
    return called and not hash_of_body(value, delivery.body)


def _digest(text: str) -> Iterator[dict[str, str]]:
    """Yield hash and encoding, by length and alphabet; what is the default is left out."""
    size = len(text) // 2 if re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", text) else 0
    encoding = "hex"
    if size not in _HASHES:
        encoding = "base64url" if set("-_") & set(text) or len(text) % 4 else "base64"
        with suppress(ValueError):
            size = len(b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if encoding[6:] else None))
    if size in _HASHES:
        hashed = {} if size == 32 else {"hash": _HASHES[size]}  # noqa: PLR2004  SHA-256, the default
        yield {**hashed, **({} if encoding == "hex" else {"encoding": encoding})}


def _times(spelled: Mapping[str, Any], delivery: Delivery) -> Iterator[dict[str, Any]]:
    """The signed times there could be, and at last none."""
    if "key" in spelled:
        value = delivery.headers.get(spelled.get("header", ""), "")
        for key, text in _pairs(value):
            if key != spelled["key"] and instant(text):
                yield {"timestamp": _timestamp("key", key, text)}
    for name, value in delivery.headers.items():
        if (_TIME.search(name) or _UNIX.fullmatch(value)) and instant(value):
            yield {"timestamp": _timestamp("header", name, value)}
    yield {}


def _timestamp(where: str, name: str, value: str) -> Timestamp:
    unit = "iso" if not value.isdigit() else "ms" if len(value) > 11 else "s"  # noqa: PLR2004  digits of ms
    return Timestamp(**{where: name}, **({"unit": unit} if unit != "s" else {}))  # type: ignore[arg-type]


def _signed(times: Mapping[str, Any], delivery: Delivery) -> Iterator[dict[str, str]]:
    """The texts that could be signed, the likeliest first; what is the default is left out."""
    yield from _listed_headers(times, delivery)
    time = ("{timestamp}",) if times else ()
    ids = [(f"{{header:{name}}}",) for name in delivery.headers if _ANY_ID.search(name)]
    more_of_ids = ((*name, *more) for name in ids for more in _BESIDES if len(more) == 1)
    others = (
        (f"{{header:{name}}}",)
        for name, value in delivery.headers.items()
        if _ID_LIKE.fullmatch(value) and not (_ANY_ID.search(name) or _UNIX.fullmatch(value))
    )
    besides = (*_BESIDES, *ids, *more_of_ids, *others)
    for more, mark, body in product(besides, _BETWEEN, _BODIES):
        for order in permutations((*time, *more, body)):
            yield {"signed": text} if (text := mark.join(order)) != "{body}" else {}


def _listed_headers(times: Mapping[str, Any], delivery: Delivery) -> Iterator[dict[str, str]]:
    """The signed parts as the signature's header lists them, `headers="(request-target) date digest"`."""
    digest = b64encode(sha256(delivery.body).digest()).decode()
    for found in filter(None, map(_SIGNED_HEADERS.search, delivery.headers.values())):
        lines = []
        for name in found[1].lower().split():
            value = f"{{header:{name}}}"
            if digest in delivery.headers.get(name, ""):
                value = delivery.headers[name].replace(digest, "{sha256:base64}")
            own = {"(request-target)": f"{delivery.method.lower()} {{path}}", "(created)": "{timestamp}"}
            lines.append(f"{name}: {own.get(name, value)}")
        text = "\n".join(lines)
        if ("{timestamp}" in text) == bool(times):
            yield {"signed": text}


def _events(delivery: Delivery) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return where id, type and time are: in the body first, for most senders sign that only."""
    body: Any = None
    with suppress(Rejected):
        body = any_body(delivery)
    return _places(body, delivery.headers)


def _places(body: object, sent: Mapping[str, str]) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return where in a body, or in the headers that were sent, id, type and time are."""
    places: dict[str, tuple[str, ...]] = {}
    in_headers: dict[str, str] = {}
    around = _around_the_event(body)
    for name, paths, headers, otherwise in (
        ("id", _IDS, _ID, ("body_digest",)),
        ("type", _TYPES, _TYPE, ("fixed", "event")),
        ("account", _ACCOUNTS, None, ()),
        ("occurred_at", _TIMES, None, ()),
    ):
        path = _first(body, paths) or _first(
            body, tuple(f"{part}.{each}" for part in around for each in paths)
        )
        header = next((each for each in sent if headers and headers.search(each)), "")
        if path:
            places[name] = ("field", path)
        elif header:
            places[name], in_headers[name] = ("header", header), header
        elif otherwise:
            places[name] = otherwise
    return places, in_headers


def _around_the_event(body: object) -> list[str]:
    """Return the names of those parts of a body that have an id and a type, as an event has."""
    parts = body.items() if isinstance(body, dict) else ()
    return [str(name) for name, part in parts if _first(part, _OWN_IDS) and _first(part, _OWN_TYPES)]


def _first(body: object, paths: tuple[str, ...]) -> str:
    """Return the first of `paths`, in snake case or camel case, at which a text or a number is; empty for none."""
    camel = (re.sub("_([a-z])", lambda found: found[1].upper(), path) for path in paths)
    for path in chain.from_iterable(zip(paths, camel, strict=True)):
        value = body
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return f"$.{path}"
    return ""
