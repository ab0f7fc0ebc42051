"""Values of a body, set and removed by path: `data.object.amount=500`, `commits.0.message` or `commits[0].message`."""

import json
import re
from typing import Any

_INDEX = re.compile(r"\[([0-9]+)\]")


def set_path(document: Any, assignment: str) -> None:  # noqa: ANN401  any JSON
    """Set one value in place: `data.object.amount=500`, `commits.0.message=hello`.

    The value is JSON if it reads as JSON, else a string. Missing objects and nulls on the way become objects;
    an index one past a list's end appends. Raises: ValueError if the path cannot exist; then nothing changed.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not all(_keys(path)):
        raise ValueError(f"{assignment!r} sets nothing; write path=value, as in data.object.amount=500")
    set_value(document, path, _value(text))


def set_value(document: Any, path: str, value: object) -> None:  # noqa: ANN401  any JSON
    """Set one value in place, whatever it is; as `set_path` otherwise."""
    keys = _keys(path)
    if not all(keys):
        raise ValueError(f"{path!r} names nothing; write a path, as in data.object.amount")
    _set(document, keys, 0, value)


def remove_path(document: Any, path: str) -> None:  # noqa: ANN401  any JSON
    """Remove one value in place; what follows it in a list moves up.

    Raises: ValueError naming the part of the path that is not there; then nothing changed.
    """
    keys = _keys(path)
    if not all(keys):
        raise ValueError(f"{path!r} names nothing; write a path, as in data.object.amount")
    holder = document
    for depth, key in enumerate(keys):
        here = ".".join(keys[:depth]) or "the body"
        slot: Any = key
        if isinstance(holder, list) and key.isascii() and key.isdecimal() and int(key) < len(holder):
            slot = int(key)
        elif not isinstance(holder, dict) or key not in holder:
            raise ValueError(f"cannot remove {path}: {here} has no {key!r}; {_inside(holder)}")
        if depth == len(keys) - 1:
            del holder[slot]
            return
        holder = holder[slot]


def _keys(path: str) -> list[str]:
    """Return the parts of a path; `[0]` is a part of its own."""
    return _INDEX.sub(r".\1", path).split(".")


def _inside(holder: object) -> str:
    if isinstance(holder, dict):
        return f"it has {', '.join(map(str, holder)) or 'nothing'}"
    return f"it is a list of {len(holder)}" if isinstance(holder, list) else "it is no object or list"


def _set(holder: Any, keys: list[str], depth: int, value: object) -> None:  # noqa: ANN401
    slot = _slot(holder, keys, depth)
    if depth < len(keys) - 1:
        inner = _get(holder, slot)
        inner = {} if inner is None else inner
        _set(inner, keys, depth + 1, value)
        value = inner
    if slot == len(holder) and isinstance(holder, list):
        holder.append(value)
    else:
        holder[slot] = value


def _slot(holder: object, keys: list[str], depth: int) -> str | int:
    key, here = keys[depth], ".".join(keys[:depth]) or "the body"
    if isinstance(holder, dict):
        return key
    if not isinstance(holder, list):
        raise ValueError(  # noqa: TRY004  the path is what is wrong
            f"cannot set {'.'.join(keys)}: {here} is {json.dumps(holder)}, not an object or a list"
        )
    if not (key.isascii() and key.isdecimal()) or int(key) > len(holder):
        raise ValueError(
            f"cannot set {'.'.join(keys)}: {here} is a list of {len(holder)}; "
            f"write an index from 0 to {len(holder)}, not {key!r}"
        )
    return int(key)


def _get(holder: Any, slot: str | int) -> Any:  # noqa: ANN401
    if isinstance(holder, dict):
        return holder.get(str(slot))
    return holder[slot] if int(slot) < len(holder) else None


def _value(text: str) -> object:
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)  # NaN and 1e999 read as JSON and cannot be written as JSON
    except (ValueError, RecursionError):
        return text
    return value
