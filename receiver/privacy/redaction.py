"""Takes out of a body what must never be stored: the values at a source's `redact` paths.

What can't be read can't be redacted, so nothing is kept of it. A body that was read is written anew, for a key
that comes twice would otherwise hide its first value; numbers keep their digits, keys their order, and so do NaN and
bytes that are not UTF-8, which some senders write. A path goes on into text that holds JSON (`$.Message.card`, or the
fields of a form), as some senders nest it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import Any
from urllib.parse import urlencode

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.reading.bodies import BOM, form_pairs, is_form
from hookonce.providers.kit.reading.json_paths import Step

MASK = "[redacted]"
NOTHING = b'"[redacted]"'
"""What is stored of a body that can't be read: still JSON, and no event is lost."""

_BLANK = "\N{ZERO WIDTH NO-BREAK SPACE} \t\r\n"
_UNREADABLE = (Rejected, ValueError, RecursionError)

Paths = Sequence[tuple[Step, ...]]

_DIGITS = token_hex(16)  # marks numbers while they are text; no sender can know it
_NUMBER = re.compile(f'"{_DIGITS}([-+.0-9eE]+|NaN|-?Infinity)"')


def _as_written(number: str) -> str:
    return _DIGITS + number


_DECODER = json.JSONDecoder(parse_float=_as_written, parse_int=_as_written, parse_constant=_as_written)


def redacted(
    body: bytes, paths: Paths, headers: Mapping[str, str], mask: Callable[[object], str] = lambda _: MASK
) -> bytes:
    """Return the body with the values at `paths` replaced by what `mask` makes of them; raises nothing.

    `headers` say whether it may be a form. A body that is neither JSON nor a form becomes `NOTHING`.
    """
    try:
        text = body.removeprefix(BOM).decode(errors="surrogateescape")
        return _json(text, paths, mask).encode(errors="surrogateescape")
    except _UNREADABLE:
        pass
    if not is_form(headers):
        return NOTHING
    try:
        return _form(form_pairs(Delivery("POST", "", headers, body)), paths, mask)
    except _UNREADABLE:
        return NOTHING


def _form(pairs: Sequence[tuple[str, str]], paths: Paths, mask: Callable[[object], str]) -> bytes:
    kept = []
    for name, value in pairs:
        field: Any = {name: value}
        for steps in paths:
            field = _masked(field, steps, mask)
        if not isinstance(field, dict):
            return NOTHING
        kept.append((name, field[name]))
    return urlencode(kept).encode()


def _json(text: str, paths: Paths, mask: Callable[[object], str]) -> str:
    data = _DECODER.decode(text)
    for steps in paths:
        data = _masked(data, steps, mask)
    written = json.dumps(data, separators=(",", ":"), ensure_ascii=_has_half_characters(text))
    return _NUMBER.sub(r"\1", written)


def _masked(data: Any, steps: tuple[Step, ...], mask: Callable[[object], str]) -> Any:  # noqa: ANN401
    """Replace what is at `steps`, in place where that can be; nothing there is fine."""
    if not steps:
        return mask(data)
    step, rest = steps[0], steps[1:]
    if isinstance(data, str):
        return _masked_text(data, steps, mask)
    if isinstance(data, list):
        for n in range(len(data)):
            if step is None or step == n:
                data[n] = _masked(data[n], rest, mask)
    elif isinstance(data, dict) and isinstance(step, str) and step in data:
        data[step] = _masked(data[step], rest, mask)
    return data


def _masked_text(text: str, steps: tuple[Step, ...], mask: Callable[[object], str]) -> str:
    """Go on into text that holds a JSON object or list; of what looks like one and can't be read nothing is kept."""
    if text.lstrip(_BLANK)[:1] not in {"{", "["}:
        return text
    try:
        return _json(text, [steps], mask)
    except ValueError:
        return MASK


def _has_half_characters(text: str) -> bool:
    """Whether an escaped half of a pair may be in the text: such a string has no UTF-8."""
    return "\\ud" in text or "\\uD" in text
