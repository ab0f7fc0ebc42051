"""The local variables of a frame as they are kept: bounded texts, made without calling any code of the user's.

A value of a class of the user's is shown by what its instance holds, and one of a library's by its class: a `repr` may
take long, query a database, raise, or tell a password.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any
from uuid import UUID

from hookonce.jobs.failures.error_summary import is_users
from hookonce.receiver.privacy.masking import MASK, is_credential

MAX_VARIABLES = 12
"""Variables of a frame that are kept, the newest."""
MAX_VALUE = 160
"""Characters of a value."""
_MOST_ITEMS = 6
_DEPTH = 2
_LONGEST_INTEGER = 512
"""Bits; Python refuses to spell a very long one."""
_SPELLED = (bool, float, complex, Decimal, date, datetime, time, timedelta, UUID, type(None))
_BRACKETS: Mapping[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    dict: ("{", "}"),
}
_LEFT_OUT = (FunctionType, ModuleType, type)


def local_values(found: Mapping[str, object], cleaned: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Return the names of variables with their values; those of names that sound like a credential are masked.

    `cleaned` makes each text fit to be kept, before it is cut.
    """
    kept = [
        (name, value)
        for name, value in found.items()
        if not name.startswith("__") and not issubclass(type(value), _LEFT_OUT)
    ]
    return tuple((name, cleaned(_shown(name, value))[:MAX_VALUE]) for name, value in kept[-MAX_VARIABLES:])


def _shown(name: str, value: object) -> str:
    try:
        return _masked(name, value, _DEPTH)
    except Exception:  # noqa: BLE001  another thread changes it, or its metaclass is the user's
        return "(can't be shown)"


def _masked(name: object, value: object, depth: int) -> str:
    is_secret = type(name) is str and is_credential(name.lower().replace("_", "-"))
    return MASK if is_secret else _spelled(value, depth)


def _spelled(value: Any, depth: int) -> str:  # noqa: ANN401  whatever a variable holds
    kind = type(value)
    if kind in {str, bytes}:
        return repr(value[: 4 * MAX_VALUE])  # a secret at the cut is whole, and then masked
    if kind in _SPELLED or (kind is int and value.bit_length() <= _LONGEST_INTEGER):
        return repr(value)
    if kind in _BRACKETS:
        opening, closing = _BRACKETS[kind]
        return opening + _items(value, depth) + closing if depth else f"{kind.__name__} of {len(value)}"
    fields = _fields(value) if depth and _is_of_user(kind) else {}
    return f"{kind.__name__}({_items(fields, depth, '=')})"


def _is_of_user(kind: type) -> bool:
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return path is not None and is_users(path)


def _fields(value: object) -> dict[str, Any]:
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:  # an instance with slots
        return {}
    return {name: each for name, each in held.items() if not name.startswith("_")}


def _items(values: Collection[Any], depth: int, sign: str = ": ") -> str:
    if isinstance(values, dict):
        shown = [
            f"{name if sign == '=' else _spelled(name, 0)}{sign}{_masked(name, each, depth - 1)}"
            for name, each in islice(values.items(), _MOST_ITEMS)
        ]
    else:
        shown = [_spelled(each, depth - 1) for each in islice(values, _MOST_ITEMS)]
    left = len(values) - _MOST_ITEMS
    return ", ".join(shown + [f"… {left} more"] * (left > 0))
