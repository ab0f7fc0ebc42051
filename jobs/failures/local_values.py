"""The local variables of a frame as they are kept: bounded texts, made without calling any code of the user's.

A value of a class of the user's is shown by what its instance holds, and one of a library's by its class: a `repr` may
take long, query a database, raise, or tell a password.
"""

import re
import sys
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice, repeat
from types import FunctionType, GetSetDescriptorType, ModuleType
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
_LONGEST_NAME = 64
_LONGEST_INTEGER = 512
"""Bits; Python refuses to spell a very long one."""
_CREDENTIAL = re.compile(r"pwd|creds|signature|session-?id|(^|-)(pass|otp|pin|cvc|cvv|sid|iban|ssn)(-|$)")
"""Names of variables that hold a credential, beside those that headers have."""
_IN_A_TEXT = re.compile(
    r"""(://[^\s:/@]*:)[^\s/'"]+(?=@)
    |((?i:passw\w*|pwd|secret|token|api_?key)(\\*["'])?\s*[=:]\s*)
    (?:(\\*["'])(?(3)|(?![\s,:)\]}\\]))(?:(?!\4)\\+.|[^\\'"])+|(?:(?!\\+["'])[^\s&,;'"()\[\]{}])+)""",
    re.VERBOSE,
)
"""A password in an address, or behind its name; each may be quoted, and the quotes escaped, as in JSON."""
_SPELLED = (bool, float, complex, Decimal, date, datetime, time, timedelta, UUID, type(None))
_BRACKETS: Mapping[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    dict: ("{", "}"),
}
_LEFT_OUT = (FunctionType, ModuleType, type)
_name_of, _module_of, _mro_of, _members_of = (
    type.__dict__[name].__get__ for name in ("__name__", "__module__", "__mro__", "__dict__")
)
"""Name, module, bases and members of a class, without asking its metaclass, which may be the user's."""


def local_values(found: Mapping[str, object], cleaned: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Return the names of variables with their values; those of names that sound like a credential are masked.

    `cleaned` makes each text fit to be kept, before it is cut.
    """
    kept = [
        (name, value)
        for name, value in found.items()
        if not name.startswith("__") and not issubclass(type(value), _LEFT_OUT)
    ]
    shown = [(name, cleaned(_shown(name, value))) for name, value in kept[-MAX_VARIABLES:]]
    return tuple((name, _IN_A_TEXT.sub(rf"\1\2\4{MASK}", text)[:MAX_VALUE]) for name, text in shown)


def _shown(name: str, value: object) -> str:
    try:
        return MASK if _is_secret(name) else _spelled(value, _DEPTH)
    except Exception:  # noqa: BLE001  another thread changes it
        return "(can't be shown)"


def _is_secret(name: Any) -> bool:  # noqa: ANN401  of a variable, or a key of any kind
    text = name.decode("latin-1") if type(name) is bytes else name
    if not issubclass(type(text), str):
        return False
    text = str.lower(text).replace("_", "-")
    return is_credential(text) or _CREDENTIAL.search(text) is not None


def _spelled(value: Any, depth: int) -> str:  # noqa: ANN401  whatever a variable holds
    kind = type(value)
    is_plain = type(kind) is type  # else a metaclass might be asked whether it is one of those
    if is_plain and kind in {str, bytes}:
        return repr(value[: 4 * MAX_VALUE])  # a secret at the cut is whole, and then masked
    if is_plain and (kind in _SPELLED or (kind is int and value.bit_length() <= _LONGEST_INTEGER)):
        return repr(value)
    if is_plain and kind in _BRACKETS:
        opening, closing = _BRACKETS[kind]
        return opening + _items(value, depth) + closing if depth else f"{kind.__name__} of {len(value)}"
    fields = _fields(value) if depth and _is_of_user(kind) else {}
    return f"{_name_of(kind)}({_items(fields, depth, '=')})"


def _is_of_user(kind: type) -> bool:
    module = _module_of(kind)
    path = getattr(sys.modules.get(module), "__file__", None) if type(module) is str else None
    return path is not None and is_users(path)


def _fields(value: object) -> dict[str, Any]:
    found = (_members_of(each).get("__dict__") for each in _mro_of(type(value)))
    held = next(filter(None, found), None)  # None of an instance with slots; a property is the user's
    if type(held) is not GetSetDescriptorType:
        return {}
    named = dict.items(held.__get__(value))
    return {name: each for name, each in named if type(name) is str and not name.startswith("_")}


def _items(values: Collection[Any], depth: int, sign: str = ": ") -> str:
    """Spell items; one is masked by its name, or by the text before it: ("Authorization", "Bearer …") is a pair."""
    pairs = values.items() if isinstance(values, dict) else zip(repeat(None), values, strict=False)
    shown: list[str] = []
    before: object = None
    for name, each in islice(pairs, _MOST_ITEMS):
        called = f"{name if sign == '=' else _spelled(name, 0)}{sign}" if isinstance(values, dict) else ""
        is_secret = _is_secret(name) or _is_secret(before)
        shown.append(called + (MASK if is_secret else _spelled(each, depth - 1)))
        is_text = type(each) is str or type(each) is bytes  # a metaclass of the user's is asked nothing
        before = each if is_text and not is_secret and len(each) <= _LONGEST_NAME else None
    left = len(values) - _MOST_ITEMS
    return ", ".join(shown + [f"… {left} more"] * (left > 0))
