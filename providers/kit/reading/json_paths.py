"""Places in a JSON document: `$.data.object.id`, `$.items[0].id`, `$['odd.key']`, `$.events[*]`.

A small part of JSONPath, parsed once when a provider is loaded. `[*]` (or `[]`) stands for every element of a
list and is for `without` and `slices` only; `find` wants one place.
"""

import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

Step = str | int | None
"""A key, an index, or None for every element of a list."""

_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['([^']+)'\]|\[(\d{1,6})\]|\[(\*?)\]")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_key: Final[Callable[[str, int], tuple[str, int]]] = scanstring
_DECODER: Final[Any] = json.JSONDecoder()
_scan: Final[Callable[[str, int], tuple[Any, int]]] = _DECODER.scan_once


def parse(path: str) -> tuple[Step, ...]:
    """Turn `path` into steps; `$` alone is the whole document. Raises: ValueError naming the path."""
    steps: list[Step] = []
    at = 1
    while path.startswith("$") and at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            break
        key, quoted, index, _ = match.groups()
        steps.append(key or quoted or (None if index is None else int(index)))
        at = match.end()
    if not path.startswith("$") or at < len(path):
        msg = f"{path!r} is not a path, expected one like '$.id', '$.data.items[0].id' or '$.events[*]'"
        raise ValueError(msg)
    return tuple(steps)


def find(data: Any, steps: tuple[Step, ...]) -> Any:  # noqa: ANN401
    """Return the value at `steps`, or None where there is none; a JSON null counts as nothing."""
    for step in steps:
        if isinstance(data, dict) if isinstance(step, str) else isinstance(data, list):
            try:
                data = data[step]
            except (KeyError, IndexError):
                return None
        else:
            return None
    return data


def find_text(data: Any, *steps: Step) -> str:  # noqa: ANN401
    """Return the text or the integer at `steps`, as text; empty for anything else, whose spelling may be long."""
    found = find(data, steps)
    return str(found) if isinstance(found, (str, int)) else ""


def every(data: Any, steps: tuple[Step, ...]) -> list[Any]:  # noqa: ANN401
    """Return all values at `steps`, in order; none where there is nothing."""
    found = [data]
    for step in steps:
        if step is None:
            found = [value for each in found if isinstance(each, list) for value in each]
        elif isinstance(step, str):
            found = [each[step] for each in found if isinstance(each, dict) and step in each]
        else:
            found = [each[step] for each in found if isinstance(each, list) and step < len(each)]
    return [value for value in found if value is not None]


def without(data: Any, steps: tuple[Step, ...]) -> Any:  # noqa: ANN401
    """Return `data` without what is at `steps`, which is copied as far as it differs; nothing there is fine."""
    if not steps:
        return data
    step, rest = steps[0], steps[1:]
    if isinstance(data, list) and step is None:
        return [without(item, rest) for item in data]
    if isinstance(data, list) and isinstance(step, int) and step < len(data):
        return [*data[:step], without(data[step], rest), *data[step + 1 :]]
    if isinstance(data, dict) and isinstance(step, str) and step in data:
        kept = data.copy()
        if rest:
            kept[step] = without(data[step], rest)
        else:
            del kept[step]
        return kept
    return data


def put(data: Any, steps: tuple[Step, ...], value: object) -> Any:  # noqa: ANN401
    """Put `value` at `steps` of `data` (None to begin with), making what is missing; for samples."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        made = data if isinstance(data, dict) else {}
        made[step] = put(made.get(step), rest, value)
        return made
    items = data if isinstance(data, list) else []
    index = step or 0
    items.extend([None] * (index + 1 - len(items)))
    items[index] = put(items[index], rest, value)
    return items


def slices(text: str, steps: tuple[Step, ...]) -> list[tuple[Any, str]]:
    """Return every value at `steps` of the valid JSON `text`, each with its own characters, in order.

    The characters are cut out and not written anew, so that a number keeps its digits (`10.10`, 30 decimals).
    """
    found: list[tuple[Any, str]] = []
    _walk(text, 0, steps, found)
    return found


def _walk(text: str, at: int, steps: tuple[Step, ...], found: list[tuple[Any, str]]) -> int:
    """Collect into `found` below `at`; the index after the value that starts there."""
    at = _skip(text, at)
    if steps and isinstance(steps[0], str) and text[at] == "{":
        return _members(text, at, steps, found)
    if steps and not isinstance(steps[0], str) and text[at] == "[":
        return _elements(text, at, steps, found)
    value, end = _scan(text, at)
    if not steps:
        found.append((value, text[at:end]))
    return end


def _members(text: str, at: int, steps: tuple[Step, ...], found: list[tuple[Any, str]]) -> int:
    start = len(found)
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _key(text, at + 1)
        at = _skip(text, at) + 1
        if key == steps[0]:
            del found[start:]  # a key that comes twice: the last one counts
            at = _walk(text, at, steps[1:], found)
        else:
            _, at = _scan(text, _skip(text, at))
        at = _comma(text, at)
    return at + 1


def _elements(text: str, at: int, steps: tuple[Step, ...], found: list[tuple[Any, str]]) -> int:
    at, index = _skip(text, at + 1), 0
    rest = steps[1:]
    while text[at] != "]":
        if steps[0] in (None, index):
            at = _walk(text, at, rest, found)
        else:
            _, at = _scan(text, at)
        at, index = _comma(text, at), index + 1
    return at + 1


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] > " ":
        return at
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
