"""Another id of the same form: `evt_1NG8Du2e` becomes `evt_7KX3Ab9q`, a UUID another UUID, a number another number."""

import re
import secrets
import string
import uuid
from collections.abc import Mapping
from typing import Any

Id = str | int

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PREFIX = re.compile(r"(?:[A-Za-z]{1,12}[_.:-])+|[A-Z]{2}(?=[0-9a-f]{16,}$)")
_HEX = re.compile(r"[0-9a-f]{8,}")
_IN_TEXT = 8
"""Of characters: as long an id is also found where it is a part of a text, in a URL for instance."""


def reshaped(value: Id) -> Id:
    """Return another id of this form: what a prefix says, which characters are digits, and how many there are."""
    if isinstance(value, int):
        return int(_digits(str(value)))
    if _UUID.fullmatch(value):
        made = str(uuid.uuid4())
        return made.upper() if value.upper() == value else made
    kept = match[0] if (match := _PREFIX.match(value)) and match.end() < len(value) else ""
    rest = value[len(kept) :]
    if rest.isdecimal():
        return kept + _digits(rest)
    if _HEX.fullmatch(rest):
        return kept + secrets.token_hex(len(rest))[: len(rest)]
    return kept + "".join(map(_like, rest))


def replaced(value: Any, new: Mapping[Id, Id]) -> Any:  # noqa: ANN401  any JSON
    """Return a body in which every id that is a key of `new` is what it says, wherever it stands."""
    if not new:
        return value
    long = sorted((str(old) for old in new if len(str(old)) >= _IN_TEXT), key=len, reverse=True)
    texts = {str(old): str(made) for old, made in new.items()}
    pattern = re.compile("|".join(map(re.escape, long)) or r"(?!)")

    def inner(value: Any) -> Any:  # noqa: ANN401
        match value:
            case dict():
                return {inner(key): inner(each) for key, each in value.items()}
            case list():
                return [inner(each) for each in value]
            case str() if value in new:
                return new[value]
            case str():
                return pattern.sub(lambda found: texts[found[0]], value)
            case int() if not isinstance(value, bool):
                return new.get(value, value)
        return value

    return inner(value)


def _digits(text: str) -> str:
    """Return another number with as many digits; it begins alike, so that it fits wherever the first one did."""
    return text[0] + "".join(secrets.choice(string.digits) for _ in text[1:])


def _like(character: str) -> str:
    for kind in (string.digits, string.ascii_lowercase, string.ascii_uppercase):
        if character in kind:
            return secrets.choice(kind)
    return character
