"""Options of a source that say what a module would declare: the scheme, the signed time, places, volatile paths.

Each function takes its options from `Options`, which keeps the mistakes.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hookonce.providers.kit.crypto.secret_keys import CODECS
from hookonce.providers.kit.crypto.signature_text import ENCODINGS
from hookonce.providers.kit.events.declare import many_events, one_event
from hookonce.providers.kit.events.fields import (
    Extractor,
    body_digest,
    data_digest,
    field,
    first,
    fixed,
    header,
    query,
)
from hookonce.providers.kit.events.identity import BODY, RECEIPT, Identity, told_apart_by
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.reading.bodies import any_body
from hookonce.providers.kit.registry.challenge_option import challenge
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.hmac_signature import HASHES, Hmac
from hookonce.providers.kit.schemes.shared_token import Token
from hookonce.providers.kit.sender import Configured, Sender
from hookonce.providers.kit.signing.message_template import signs_body
from hookonce.providers.kit.signing.timestamps import TOLERANCE, UNITS, Timestamp
from hookonce.providers.kit.signing.verdict import Sign, signer

if TYPE_CHECKING:  # the library's half that takes long to import
    from hookonce.providers.kit.schemes.public_key_signature import Signed

_PLACES: Final[dict[str, Callable[[str], Extractor]]] = {"header": header, "query": query, "fixed": fixed}
_EXPECTED: Final = "expected '$.path', 'header:Name', 'query:name' or 'fixed:text'"
_ID_EXPECTED: Final = "expected '$.path', 'header:Name', 'query:name' or 'fingerprint'"
_ALIKE: Final = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "authorization",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "forwarded",
        "from",
        "host",
        "origin",
        "pragma",
        "referer",
        "te",
        "transfer-encoding",
        "user-agent",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-real-ip",
    }
)
"""Headers of HTTP, which say the same of one delivery as of the next."""
_WHERE_EXPECTED: Final = (
    "expected 'header:Name', 'bearer', 'basic', 'query:name', 'path' or '$.path' of the body"
)
_NOWHERE: Final = fixed("")
_URL: Final = re.compile(r"[!-~]{1,1000}")


def by_signature(given: Options, scheme: "Hmac | Signed") -> Configured:
    """Return the provider of a source whose sender signs, with a secret or a private key.

    Raises: ValueError listing every mistake.
    """
    template, left_out = str(scheme.signed), volatile(given, "volatile")
    items, within = given.text("items", ""), period(given, "period")
    whole_id = data_digest(*left_out) if items else body_digest(*left_out)
    places: dict[str, Any] = {
        "id": (id_at := id_place(given, "id", whole_id)),
        "type": place(given, "type"),
        "account": place_or_none(given, "account"),
        "occurred_at": place_or_none(given, "occurred_at"),
    }
    told = [str(each) for each in places_of(given, "id")]
    delivered_by, signs_text = methods(given), given.flag("signs_text")
    handshake = challenge(given, "challenge", None if told == ["fingerprint"] else id_at, scheme)
    expect_ids_that_differ(given, "id", within)
    given.done()
    return Configured(
        sign=signer_of(scheme.sign, given),
        events=many_events(items=items, **places) if items else one_event(read=any_body, **places),
        sender=Sender(
            scheme=scheme,
            id_is_signed=all(id_is_covered(each, template) for each in told),
            signed_message=scheme.signed_message if "{params}" in template else None,
            signs_text=signs_text,
            signs_url="{url}" in template,
            retry_horizon="whoever sends decides",
            identity=identity(given, "id", within, items),
            id_period=within,
            volatile=left_out,
            handshake=handshake,
            methods=delivered_by,
        ),
    )


def hmac_scheme(given: Options) -> Hmac:
    """Return the scheme that the options tell; what it is after a mistake is of no use, `given.done()` raises."""
    declared: dict[str, Any] = {
        **_places_of_signature(given),
        "hash": given.choice("hash", HASHES),
        "encoding": given.choice("encoding", ENCODINGS),
        "prefix": given.text("prefix", ""),
        "key": given.text("key", ""),
        "separator": given.text("separator", ""),
        "signed": given.text("signed", "{body}"),
        "timestamp": timestamp(given, "timestamp"),
        "secret": given.choice("secret", CODECS),
    }
    if not signs_body(declared["signed"]):
        given.mistakes.append("signed leaves out the body; expected a template with {body}")
    try:
        return Hmac(**declared)
    except ValueError as error:
        given.mistakes.append(str(error))
        return Hmac(header="")


def _places_of_signature(given: Options) -> dict[str, Any]:
    """Return the header, the list of headers of which any may hold a signature, the query's parameter, or both."""
    query, header = given.text("query", ""), given.take("header")
    names = header if isinstance(header, list) else [] if header is None else [header]
    if not all(isinstance(name, str) and name for name in names):
        given.mistakes.append(f"header is {header!r}, expected a header's name or a list of names")
        names = ["?"]
    for name in names:
        given.arriving("header", name)
    if not names and not query:
        given.mistakes.append("header is required, or query for a signature in the URL")
        names = ["?"]
    if query and "{url}" in str(given.take("signed", "")):
        given.mistakes.append(
            "query puts the signature into the URL, which is then not what was signed; leave out {url}"
        )
    return {"header": tuple(names), "query": query, "every": len(names) > 1}


def token_scheme(given: Options, usual: str | None = None) -> Token:
    """Return the token that the options `in` and `prefix` tell, `in` being `usual` if not given.

    What it is after a mistake is of no use, `given.done()` raises.
    """
    where, prefix = given.text("in", usual), given.text("prefix", "")
    if prefix and not where.startswith("header:"):
        given.mistakes.append(
            "prefix stands before a token in a header; write in = 'header:Name', or leave it out"
        )
        prefix = ""
    try:
        return token_in(where, prefix)
    except ValueError as error:
        if where:
            given.mistakes.append(f"in is {where!r}, {error}")
        return Token(path=True)


def token_in(where: str, prefix: str = "") -> Token:
    """Return the token at `where`, written as the option `in` is. Raises: ValueError for what is no such place."""
    kind, _, name = where.partition(":")
    if where in {"basic", "bearer", "path"}:
        return {
            "basic": Token(basic=True),
            "bearer": Token(header="authorization", prefix="Bearer "),
            "path": Token(path=True),
        }[where]
    if where.startswith("$."):
        return Token(field=where)
    if kind == "header" and name:
        return Token(header=name, prefix=prefix)
    if kind == "query" and name:
        return Token(query=name)
    raise ValueError(_WHERE_EXPECTED)


def place(given: Options, name: str, expected: str = _EXPECTED) -> Extractor:
    """Return a required place; what it gives after a mistake is of no use, `given.done()` raises."""
    pick = place_or_none(given, name, expected)
    if pick is None:
        given.mistakes.append(f"{name} is required, {expected}")
    return pick or _NOWHERE


def place_or_none(given: Options, name: str, expected: str = _EXPECTED) -> Extractor | None:
    """Return a place written as text: `$.path`, `header:Name`, `query:name`, `fixed:text`; None if not given.

    Of a list of places the first counts that a delivery has.
    """
    if given.take(name) is None:
        return None
    picks: list[Extractor] = []
    for value in places_of(given, name):
        kind, _, rest = str(value).partition(":")
        try:
            if kind in _PLACES and rest:
                picks.append(_PLACES[kind](rest))
            elif isinstance(value, str) and value.startswith("$"):
                picks.append(field(value))
            else:
                given.mistakes.append(f"{name} is {value!r}, {expected}, or a list of such places")
        except ValueError as error:
            given.mistakes.append(f"{name}: {error}")
    return first(*picks) if len(picks) > 1 else picks[0] if picks else _NOWHERE


def places_of(given: Options, name: str) -> list[Any]:
    """Return the places of an option, one or a list of some, as they were given."""
    value = given.take(name)
    return value if isinstance(value, list) and value else [value]


def https_url(given: Options, name: str) -> str:
    """Return the URL of a document that may be fetched, empty if not given."""
    url = given.text(name, "")
    try:
        parts = urlsplit(url)
        is_plain = parts.hostname and not parts.username and not parts.fragment and parts.port in {None, 443}
    except ValueError:
        parts, is_plain = urlsplit(""), False
    if url and (parts.scheme != "https" or not is_plain or not _URL.fullmatch(url)):
        given.mistakes.append(
            f"{name} is {url!r}, expected a whole URL, like 'https://acme.example/jwks.json'"
        )
        return ""
    return url


def signer_of(sign: Sign, given: Options) -> Sign:
    """Have `sign` add the id and the type, where the options name headers for them."""
    names = (header_named(places_of(given, each)[0]) for each in ("id", "type"))
    return signer(sign, **dict(zip(("event_id", "type"), names, strict=True)))


def header_named(place: object) -> str:
    """Return the header that a place names, in lower case; empty for other places."""
    place = str(place)
    return place.removeprefix("header:").lower() if place.startswith("header:") else ""


def id_is_covered(place: str, signed: str) -> bool:
    """Whether the template `signed` covers the event id: one in the body is, others if the template has where they are.

    What stands beside another part with nothing between can be shifted into it, and so can the fields of a form, whose
    names and values are joined.
    """
    if name := header_named(place):
        return re.search(rf"(?<!}}){{header:{re.escape(name)}}}(?!{{)", signed.lower()) is not None
    if place.startswith("query:"):
        return "{url}" in signed and "{params}" not in signed
    return "{params}" not in signed


def period(given: Options, name: str) -> timedelta | None:
    """Return the time within which what looks alike is the same event; None if not given."""
    return timedelta(seconds=given.seconds(name, 60)) if given.take(name) is not None else None


def methods(given: Options) -> tuple[str, ...]:
    """Return the HTTP methods by which the sender delivers, POST alone unless the option is given."""
    return given.some_of("methods", ("POST", "PUT", "PATCH"), "POST")


def id_place(given: Options, name: str, fingerprint: Extractor) -> Extractor:
    """Like `place`, and `fingerprint` for the word of this name."""
    return fingerprint if given.take(name) == "fingerprint" else place(given, name, _ID_EXPECTED)


def expect_ids_that_differ(given: Options, name: str, within: timedelta | None, proof: str = "") -> None:
    """Note a mistake where the id is one that all events have: all but the first would be duplicates.

    `proof` is where the secret comes, as the option `in` has it. With a period the body and the time of receipt are
    parts of the id, so that any place will do.
    """
    for told in places_of(given, name) if within is None else ():
        why = reason_for_one_id(told, proof) if isinstance(told, str) else ""
        if not why:
            continue
        given.mistakes.append(
            f"{name} is {told!r}, {why}, so all events but the first would be duplicates; write "
            f'{name} = "fingerprint" if the sender has no id, or its place, "$.path", "header:Name" or "query:name"; '
            "period = 60 besides has equal bodies a minute apart be events of their own"
        )


def reason_for_one_id(told: str, proof: str = "") -> str:
    """Say why all events would have the id at the place `told`; empty where nothing says that they would."""
    kind, _, rest = told.partition(":")
    if kind == "fixed":
        return "the same for every event"
    if told == proof or (kind == "header" and proof.lower() == told.lower()):
        return "the place of the secret, the same for every event"
    if kind == "header" and rest.lower() in _ALIKE:
        return "which says the same of every delivery"
    return ""


def identity(given: Options, name: str, within: timedelta | None, items: str = "") -> Identity:
    """Return how events are told apart whose id is at the place that `id_place` reads, and when they came `within`."""
    if within:
        return told_apart_by(RECEIPT)
    found = []
    for told in map(str, places_of(given, name)):
        kind, _, rest = told.partition(":")
        if kind in {"header", "query", "claim"} and rest:
            found.append(f"{kind} {rest.lower() if kind == 'header' else rest}")
        elif told.startswith("$"):
            found.append(f"{items}[*]{told[1:]}" if items else told)
        else:
            return told_apart_by(
                BODY, because="the source's options say that the body, or a fixed text, is the event"
            )
    return told_apart_by(*found)


def volatile(given: Options, name: str) -> tuple[str, ...]:
    """Return a list of JSON paths, empty if not given."""
    value = given.take(name, [])
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        given.mistakes.append(f"{name} is {value!r}, expected a list of paths such as '$.sent_at'")
        return ()
    try:
        for path in value:
            json_paths.parse(path)
    except ValueError as error:
        given.mistakes.append(f"{name}: {error}")
    return tuple(value)


def timestamp(given: Options, name: str) -> Timestamp | None:
    """Return the signed time: a header's name, or a table { header or key, unit, tolerance }; None if not given."""
    value = given.take(name)
    if value is None:
        return None
    if not isinstance(value, (str, Mapping)):
        given.mistakes.append(f"{name} is {value!r}, expected a header's name or a table")
        return None
    inner = Options({"header": value} if isinstance(value, str) else value, name)
    tolerance = timedelta(seconds=inner.seconds("tolerance", 300))
    made = Timestamp(
        header=inner.header("header", ""),
        key=inner.text("key", ""),
        unit=inner.choice("unit", UNITS),
        tolerance=tolerance,
        ahead=max(tolerance, TOLERANCE),
    )
    if bool(made.header) == bool(made.key):
        inner.mistakes.append("name either header or key")
    try:
        inner.done()
    except ValueError as error:
        given.mistakes.append(str(error))
    return made
