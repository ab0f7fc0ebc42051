"""Bodies and header text, read strictly: what is odd is refused, never guessed at.

JSON: UTF-8 only (`json.loads` on bytes would also detect UTF-16; one byte order mark is passed over), no NaN
and no Infinity (nor `1e999`, which Python makes an infinity of), no integer beyond Python's 4300 digits, no
nesting beyond its recursion limit. Of a key that comes twice the last one counts, as in every SDK of a sender
that we know. A string may hold lone surrogates (an escaped half of a pair is legal JSON); nothing in the kit
encodes one strictly.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

from providers import Delivery, Reason, Rejected

_BOM: Final = b"\xef\xbb\xbf"
_FIELDS: Final = 1000
_ESCAPES: Final = 500_000  # a form is parsed before it is known to be genuine, at 0.7 µs each
"""As many fields as a form may have; the largest known genuine one (Twilio) has under a hundred."""


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        _no_constant("a number beyond double precision")
    return number


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def text_of(body: bytes) -> str:
    """Decode `body` as UTF-8 without a byte order mark.

    Raises: Rejected(bad_body) when it is anything else.
    """
    try:
        return body.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise Rejected(Reason.BAD_BODY, f"the body is not UTF-8 at byte {error.start}") from None


def parse_json(text: str) -> Any:  # noqa: ANN401  whatever the sender put in it
    """Parse one JSON document; lists and bare values are documents too.

    Raises: Rejected(bad_body), naming the position and never the text.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Rejected(Reason.BAD_BODY, f"the body is not JSON at character {error.pos}") from None
    except ValueError:
        raise Rejected(Reason.BAD_BODY, "the body holds a number that JSON or Python does not have") from None
    except RecursionError:
        raise Rejected(Reason.BAD_BODY, "the body is nested too deeply") from None


def json_body(delivery: Delivery) -> Any:  # noqa: ANN401
    """The body of `delivery` as JSON. Raises: Rejected(bad_body)."""
    return parse_json(text_of(delivery.body))


def no_longer_than(most: int, delivery: Delivery) -> Delivery:
    """`delivery` as it is. Raises: Rejected(too_large) if its body has more bytes than `most`."""
    size = len(delivery.body)
    if size > most:
        raise Rejected(Reason.TOO_LARGE, f"the body has {size} bytes, {most} are read of its kind")
    return delivery


def any_body(delivery: Delivery) -> Any:  # noqa: ANN401
    """A body of whatever kind was sent: JSON by its first character, a form by its type, text otherwise.

    Raises: Rejected(bad_body).
    """
    if delivery.body.removeprefix(_BOM).lstrip()[:1] in (b"{", b"["):
        return json_body(delivery)
    return form_body(delivery) if is_form(delivery.headers) else text_of(delivery.body)


def any_body_or_none(delivery: Delivery) -> Any:  # noqa: ANN401
    """Like `any_body`, None for what can't be read: of senders that pass on what others wrote."""
    try:
        return any_body(delivery)
    except Rejected:
        return None


def form_body(delivery: Delivery) -> dict[str, str]:
    """The body of `delivery` as an HTML form, last value of each field. Raises: Rejected(bad_body)."""
    return parse_form(text_of(delivery.body))


def form_pairs(delivery: Delivery) -> list[tuple[str, str]]:
    """The fields of a form as they were sent, a name as often as it came. Raises: Rejected(bad_body)."""
    return _pairs(text_of(delivery.body))


def parse_form(text: str) -> dict[str, str]:
    """Parse `a=1&b=2`: at most 1000 fields, percent-encoded UTF-8, blank values kept.

    Raises: Rejected(bad_body).
    """
    return dict(_pairs(text))


def _pairs(text: str) -> list[tuple[str, str]]:
    if text.count("%") > _ESCAPES:
        raise Rejected(Reason.TOO_LARGE, "the form has more escapes than any sender's")
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS)
    except ValueError:
        raise Rejected(Reason.BAD_BODY, "the body is not a form in percent-encoded UTF-8") from None


def form_field(delivery: Delivery, name: str) -> str:
    """What a form holds under `name`. Raises: Rejected(bad_body)."""
    fields = form_body(delivery)
    if name not in fields:
        raise Rejected(Reason.BAD_BODY, f"the form has no field {name!r}")
    return fields[name]


def json_in_form(name: str) -> Callable[[Delivery], Any]:
    """Make a reader of bodies that are a form whose field `name` holds the JSON."""
    return lambda delivery: parse_json(form_field(delivery, name))


def is_form(headers: Mapping[str, str]) -> bool:
    """Say whether the content type is the one of HTML forms."""
    return headers.get("content-type", "").lower().lstrip().startswith("application/x-www-form-urlencoded")


def header_of(headers: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str]:
    """The first of `names` (lower case) that was sent, with its value.

    Raises: Rejected(missing_header).
    """
    for name in names:
        value = headers.get(name)
        if value is not None:
            return name, value
    raise Rejected(Reason.MISSING_HEADER, f"header {' or '.join(names)} is missing")


def octets(name: str, value: str) -> bytes:
    """The bytes of a header value, as they came over the wire (WSGI hands them over as latin-1 text).

    Raises: Rejected(bad_header) for text that never was bytes.
    """
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        raise Rejected(Reason.BAD_HEADER, f"header {name} is not made of bytes") from None
