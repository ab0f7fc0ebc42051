"""Bodies and header text, read strictly: what is odd is refused, never guessed at.

JSON: UTF-8 only (`json.loads` on bytes would also detect UTF-16; one byte order mark is passed over), no NaN
and no Infinity (nor `1e999`, which Python makes an infinity of), no integer beyond Python's 4300 digits, no
nesting beyond its recursion limit. Of a key that comes twice the last one counts, as in every SDK of a sender
that we know. A string may hold lone surrogates (an escaped half of a pair is legal JSON); nothing in the kit
encodes one strictly.

Some senders' bodies have to be read to find what is signed, so anybody may send one: each is read once, and what
costs more than its bytes is counted before, or while, it is read. The bounds lie far beyond any genuine body;
tests/providers/test_cost_before_proof.py measures what they leave.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, NoReturn, TypeVar
from urllib.parse import unquote

from hookonce.providers import Delivery, Reason, Rejected

BOM: Final = b"\xef\xbb\xbf"
_MAX_FIELDS: Final = 1000
"""As many fields as a form may have; the largest known genuine one (Twilio) has under a hundred."""
_MAX_ODD_ESCAPES: Final = 20_000
"""As many `%` as a form may have in which one of them escapes nothing: such a form is decoded one by one."""
_PIECE: Final = 1 << 18
"""Bytes of a form that are decoded in one go: some 2 ms."""
_MAX_COSTLY: Final = 100_000
"""As many lists and objects as JSON may have, or one every eight bytes; 15,000 events of six each have 90,000."""
_BYTES_PER_COSTLY: Final = 8
_BYTES_PER_EXTREME: Final = 64
"""Of numbers like `7e-310`, which Python reads by long division; hex digits that look so come every 105 bytes."""
_EXTREMES: Final = (b"0e000", b"0e+000", b"0e-000")
_DIGITS_AND_E: Final = bytes.maketrans(b"123456789E", b"000000000e")
_BEYOND_FLOATS: Final = b"0" * 309

Read = TypeVar("Read")


class _Reading(NamedTuple):
    """The outcome of reading `body`: a value, or the refusal that is to be raised again."""

    body: bytes
    value: Any
    refusal: tuple[Reason, str] | None


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number:  # only infinity's is not zero
        _no_constant("a number beyond double precision")
    return number


def _finite_up_to(most: int) -> Callable[[str], float]:
    """Make a `_finite` for the first `most` floats."""
    left = most

    def finite(digits: str) -> float:
        nonlocal left
        left -= 1
        number = float(digits)
        if left < 0:
            raise Rejected(
                Reason.TOO_LARGE, f"the body has more than {most} fractions, more than any sender's"
            )
        return _finite(digits) if number - number else number

    return finite


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_FAST_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def _integer_or_text(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        return digits


_LENIENT_DECODER: Final = json.JSONDecoder(parse_int=_integer_or_text)


def _decoder_of(text: str) -> json.JSONDecoder:
    """Return the decoder for `text`. Raises: Rejected(too_large).

    A long one is searched, at a tenth of the cost of parsing it, for what costs more than its bytes. Where a number
    may be too large for a float, each is looked at, and so counted; elsewhere Python's own reader is the quickest.
    """
    if len(text) < _MAX_COSTLY:
        return _DECODER
    most = max(_MAX_COSTLY, len(text) // _BYTES_PER_COSTLY)
    containers = text.count("[") + text.count("{")
    if containers > most:
        raise Rejected(
            Reason.TOO_LARGE, f"the body has {containers} lists and objects, more than any sender's"
        )
    plain = text.encode("utf-8", "surrogatepass").translate(_DIGITS_AND_E)
    if b"0e" not in plain and _BEYOND_FLOATS not in plain:
        return _FAST_DECODER
    extremes = sum(map(plain.count, _EXTREMES))
    if extremes > len(text) // _BYTES_PER_EXTREME:
        raise Rejected(Reason.TOO_LARGE, f"the body has {extremes} extreme numbers, more than any sender's")
    return json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite_up_to(most - containers))


def read_once(delivery: Delivery, what: str, read: Callable[[bytes], Read]) -> Read:
    """Return what `read` makes of the body of `delivery`, which it is asked for once; a refusal is remembered too.

    `what` names the way to read, which looks at the body alone. Handshake, verification under every secret and
    events share the value, so none of them may change it. A copy of the delivery with another body has none.

    Raises: Rejected, as `read` does.
    """
    known: _Reading | None = delivery.readings.get(what)
    if known is None or known.body is not delivery.body:
        try:
            known = _Reading(delivery.body, read(delivery.body), None)
        except Rejected as error:
            known = _Reading(delivery.body, None, (error.reason, error.detail))
        delivery.readings[what] = known
    if known.refusal:
        raise Rejected(*known.refusal)
    value: Read = known.value
    return value


def text_of(body: bytes) -> str:
    """Decode `body` as UTF-8 without a byte order mark.

    Raises: Rejected(bad_body) when it is anything else.
    """
    try:
        return body.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise Rejected(Reason.BAD_BODY, f"the body is not UTF-8 at byte {error.start}") from None


def parse_json(text: str) -> Any:  # noqa: ANN401  whatever the sender put in it
    """Parse one JSON document; lists and bare values are documents too.

    Raises: Rejected(bad_body), naming the position and never the text; Rejected(too_large) for one that holds more
    lists, objects or numbers than genuine ones of its length do by far.
    """
    try:
        return _decoder_of(text).decode(text)
    except json.JSONDecodeError as error:
        raise Rejected(Reason.BAD_BODY, f"the body is not JSON at character {error.pos}") from None
    except ValueError:
        raise Rejected(Reason.BAD_BODY, "the body holds a number that JSON or Python does not have") from None
    except RecursionError:
        raise Rejected(Reason.BAD_BODY, "the body is nested too deeply") from None


def json_body(delivery: Delivery) -> Any:  # noqa: ANN401
    """Return the body of `delivery` as JSON, not to be changed. Raises: Rejected(bad_body, too_large)."""
    return read_once(delivery, "json", _json_in)


def _json_in(body: bytes) -> Any:  # noqa: ANN401
    return parse_json(text_of(body))


def read_leniently(delivery: Delivery) -> Delivery | None:
    """Return a delivery that `json_body` refused, with a reading of its body by which it can be verified all the same.

    Of senders whose signature stands in the body, or covers values of it. Read are NaN and Infinity, integers of any
    length (as text beyond Python's digits) and bytes that are not UTF-8. None where `json_body` refused nothing, or
    that leads to nothing. Raises: Rejected(too_large).
    """
    known: _Reading | None = delivery.readings.get("json")
    if known is None or known.body is not delivery.body or known.refusal is None:
        return None
    text = delivery.body.removeprefix(BOM).decode("utf-8", "surrogateescape")
    _decoder_of(text)
    try:
        value = _LENIENT_DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return replace(delivery, readings={"json": _Reading(delivery.body, value, None)})


def no_longer_than(max_bytes: int, delivery: Delivery) -> Delivery:
    """`delivery` as it is. Raises: Rejected(too_large) if its body has more bytes than `max_bytes`."""
    size = len(delivery.body)
    if size > max_bytes:
        raise Rejected(Reason.TOO_LARGE, f"the body has {size} bytes, {max_bytes} are read of its kind")
    return delivery


def any_body(delivery: Delivery) -> Any:  # noqa: ANN401
    """Return a body of whatever kind was sent: JSON by its first character, a form by its type, text otherwise.

    Raises: Rejected(bad_body).
    """
    if delivery.body.removeprefix(BOM).lstrip()[:1] in (b"{", b"["):
        return json_body(delivery)
    return form_body(delivery) if is_form(delivery.headers) else text_of(delivery.body)


def json_or_form(delivery: Delivery) -> Any:  # noqa: ANN401
    """Return the body as JSON by its first character, as a form otherwise; the content type is anybody's.

    Raises: Rejected(bad_body).
    """
    is_json = delivery.body.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")
    return json_body(delivery) if is_json else form_body(delivery)


def any_body_or_none(delivery: Delivery) -> Any:  # noqa: ANN401
    """Like `any_body`, None for what can't be read: of senders that pass on what others wrote."""
    try:
        return any_body(delivery)
    except Rejected:
        return None


def form_body(delivery: Delivery) -> dict[str, str]:
    """Return the body of `delivery` as an HTML form, last value of each field. Raises: Rejected(bad_body)."""
    return dict(form_pairs(delivery))


def form_pairs(delivery: Delivery) -> list[tuple[str, str]]:
    """Return the fields of a form as they were sent, a name as often as it came. Raises: Rejected(bad_body)."""
    return read_once(delivery, "form", lambda body: _pairs(text_of(body)))


def parse_form(text: str) -> dict[str, str]:
    """Parse `a=1&b=2`: at most 1000 fields, percent-encoded UTF-8, blank values kept.

    Raises: Rejected(bad_body).
    """
    return dict(_pairs(text))


def _pairs(text: str) -> list[tuple[str, str]]:
    if text.count("&") >= _MAX_FIELDS:
        raise Rejected(Reason.BAD_BODY, f"the form has more than {_MAX_FIELDS} fields")
    fields = [field.partition("=") for field in text.replace("+", " ").split("&") if field]
    may_be_odd = text.count("%") <= _MAX_ODD_ESCAPES
    try:
        return [(_unescaped(name, may_be_odd), _unescaped(value, may_be_odd)) for name, _, value in fields]
    except UnicodeError:
        raise Rejected(Reason.BAD_BODY, "the body is not a form in percent-encoded UTF-8") from None


def _pieces(escaped: bytes) -> Iterator[bytes]:
    """Cut a text with escapes into pieces, each with whole ones."""
    start = 0
    while len(escaped) - start > _PIECE:
        end = start + _PIECE
        end -= next((n for n in (1, 2) if escaped[end - n : end - n + 1] == b"%"), 0)
        yield escaped[start:end]
        start = end
    yield escaped[start:]


def _bytes_of(piece: bytes) -> bytes:
    return piece.replace(b"\\", b"\\\\").replace(b"%", b"\\x").decode("unicode_escape").encode("latin-1")


def _unescaped(text: str, may_be_odd: bool) -> str:  # noqa: FBT001  called for each field
    r"""Decode `%41` as `urllib.parse.unquote` does, which takes 0.3 µs for each: a mail in Japanese is all escapes.

    Python's own codec for `\x41` does it in one go, once the backslashes that are there stand for themselves: of a long
    text piece by piece, since nothing else runs meanwhile.
    """
    if "%" not in text:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    try:
        return b"".join(map(_bytes_of, _pieces(raw))).decode()
    except UnicodeDecodeError as error:
        if error.encoding == "utf-8":
            raise
    if not may_be_odd:
        raise Rejected(Reason.TOO_LARGE, "the form has a % that escapes nothing, and more than any sender's")
    return unquote(text, errors="strict")


def form_field(delivery: Delivery, name: str) -> str:
    """Return what a form holds under `name`. Raises: Rejected(bad_body)."""
    fields = form_body(delivery)
    if name not in fields:
        raise Rejected(Reason.BAD_BODY, f"the form has no field {name!r}")
    return fields[name]


def json_in_form(name: str) -> Callable[[Delivery], Any]:
    """Make a reader of bodies that are a form whose field `name` holds the JSON; what it returns is not changed."""
    return lambda delivery: read_once(
        delivery, f"json in {name}", lambda _: parse_json(form_field(delivery, name))
    )


def is_form(headers: Mapping[str, str]) -> bool:
    """Whether the content type is the one of HTML forms."""
    return headers.get("content-type", "").lower().lstrip().startswith("application/x-www-form-urlencoded")


def header_of(headers: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str]:
    """Return the first of `names` (lower case) that was sent, with its value.

    Raises: Rejected(missing_header).
    """
    for name in names:
        value = headers.get(name)
        if value is not None:
            return name, value
    raise Rejected(Reason.MISSING_HEADER, f"header {' or '.join(names)} is missing")


def header_name(name: str) -> str:
    """Return the name of a header in lower case. Raises: ValueError for a header that never arrives."""
    if "_" in name:
        raise ValueError(
            f"header {name!r} never arrives, for a header with an underscore is left out by proxies and by the "
            f"receiver; have the sender call it {name.replace('_', '-')!r}"
        )
    return name.lower()


def octets(name: str, value: str) -> bytes:
    """Return the bytes of a header value, as they came over the wire (WSGI hands them over as latin-1 text).

    Raises: Rejected(bad_header) for text that never was bytes.
    """
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise Rejected(Reason.BAD_HEADER, f"header {name} is not made of bytes") from None
