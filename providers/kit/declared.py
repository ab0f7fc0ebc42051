"""Options of a source that say what a module would declare: the scheme, the signed time, places, volatile paths.

Each function takes its options from `Options`, which keeps the mistakes.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from providers.kit import paths
from providers.kit.encoding import ENCODINGS
from providers.kit.fields import Pick, body_digest, field, fixed, header, query
from providers.kit.hmacs import HASHES, Hmac
from providers.kit.keys import CODECS
from providers.kit.options import Options
from providers.kit.times import UNITS, Timestamp

_PLACES: Final[dict[str, Callable[[str], Pick]]] = {"header": header, "query": query, "fixed": fixed}
_EXPECTED: Final = "expected '$.path', 'header:Name', 'query:name' or 'fixed:text'"
_NOWHERE: Final = fixed("")


def hmac_scheme(given: Options) -> Hmac:
    """The scheme that the options tell; what it is after a mistake is of no use, `given.done()` raises."""
    declared: dict[str, Any] = {
        "header": given.text("header"),
        "hash": given.choice("hash", HASHES),
        "encoding": given.choice("encoding", ENCODINGS),
        "prefix": given.text("prefix", ""),
        "key": given.text("key", ""),
        "separator": given.text("separator", ""),
        "signed": given.text("signed", "{body}"),
        "timestamp": timestamp(given, "timestamp"),
        "secret": given.choice("secret", CODECS),
    }
    if "{body}" not in declared["signed"]:
        given.mistakes.append("signed leaves out the body; expected a template with {body}")
    try:
        return Hmac(**declared)
    except ValueError as error:
        given.mistakes.append(str(error))
        return Hmac(header="")


def place(given: Options, name: str) -> Pick:
    """A required place; what it gives after a mistake is of no use, `given.done()` raises."""
    pick = place_or_none(given, name)
    if pick is None:
        given.mistakes.append(f"{name} is required, {_EXPECTED}")
    return pick or _NOWHERE


def place_or_none(given: Options, name: str) -> Pick | None:
    """A place written as text: `$.path`, `header:Name`, `query:name`, `fixed:text`; None if not given."""
    value = given.take(name)
    if value is None:
        return None
    kind, _, rest = str(value).partition(":")
    if kind in _PLACES and rest:
        return _PLACES[kind](rest)
    try:
        if isinstance(value, str) and value.startswith("$"):
            return field(value)
        given.mistakes.append(f"{name} is {value!r}, {_EXPECTED}")
    except ValueError as error:
        given.mistakes.append(f"{name}: {error}")
    return _NOWHERE


def id_place(given: Options, name: str, left_out: tuple[str, ...]) -> Pick:
    """Like `place`, and `fingerprint` for the body's own, without the paths `left_out`."""
    if given.take(name) == "fingerprint":
        return body_digest(*left_out)
    return place(given, name)


def volatile(given: Options, name: str) -> tuple[str, ...]:
    """A list of JSON paths, empty if not given."""
    value = given.take(name, [])
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        given.mistakes.append(f"{name} is {value!r}, expected a list of paths such as '$.sent_at'")
        return ()
    try:
        for path in value:
            paths.parse(path)
    except ValueError as error:
        given.mistakes.append(f"{name}: {error}")
    return tuple(value)


def timestamp(given: Options, name: str) -> Timestamp | None:
    """The signed time: a header's name, or a table { header or key, unit, tolerance }; None if not given."""
    value = given.take(name)
    if value is None:
        return None
    if not isinstance(value, (str, Mapping)):
        given.mistakes.append(f"{name} is {value!r}, expected a header's name or a table")
        return None
    inner = Options({"header": value} if isinstance(value, str) else value, name)
    made = Timestamp(
        header=inner.text("header", ""),
        key=inner.text("key", ""),
        unit=inner.choice("unit", UNITS),
        tolerance=timedelta(seconds=inner.seconds("tolerance", 300)),
    )
    if bool(made.header) == bool(made.key):
        inner.mistakes.append("name either header or key")
    try:
        inner.done()
    except ValueError as error:
        given.mistakes.append(str(error))
    return made
