"""Says what a header looks like without saying what is in it: `t=<unix seconds>,v1=<64 hex>`."""

import re
from datetime import UTC, datetime
from typing import Final

from hookonce.providers.kit.signing.header_lists import unquoted
from hookonce.providers.kit.signing.timestamps import instant

_MAX_WORD_LENGTH: Final = 12
_MILLISECOND_DIGITS: Final = 13
_BETWEEN: Final = re.compile(r"([,;:\s]+)")
_PAIR: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,15})=(.*[^=].*)")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,11}")
_FORMS: Final = (
    (re.compile(r"eyJ[\w-]+\.(eyJ[\w-]*)?\.[\w-]+"), "<signed token>"),
    (re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"), "<uuid>"),
    (re.compile(r"\d{13}"), "<unix milliseconds>"),
    (re.compile(r"\d{10}"), "<unix seconds>"),
    (re.compile(r"\d+"), "<number>"),
    (re.compile(r"(?:[0-9a-fA-F]{2}){8,}"), "<{} hex>"),
    (re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}"), "<{} base64>"),
)


def words(value: str) -> frozenset[str]:
    """Return the words of a value that belong to its form: keys and names of schemes."""
    found: set[str] = set()
    for part in _BETWEEN.split(value):
        pair = _PAIR.fullmatch(part)
        found.update(word for word in (pair[1] if pair else part,) if _WORD.fullmatch(word))
    return frozenset(found)


def form(value: str, known: frozenset[str]) -> str:
    """Describe a value; its `known` words stay, everything else is described by kind and length."""
    return "".join(
        part if _BETWEEN.fullmatch(part) else _part(part, known) for part in _BETWEEN.split(value) if part
    )


def time_in(value: str) -> datetime | None:
    """Return the time in a value, if there is one: Unix seconds or milliseconds, or ISO."""
    for part in re.findall(r"(?<![\w.])\d{10}(?:\d{3})?(?![\w])", value):
        seconds = int(part) / (1000 if len(part) == _MILLISECOND_DIGITS else 1)
        return datetime.fromtimestamp(seconds, UTC)
    return instant(value)


def _part(part: str, known: frozenset[str]) -> str:
    pair = _PAIR.fullmatch(part)
    if pair:
        return f"{pair[1] if pair[1] in known else '<name>'}={_kind(unquoted(pair[2]), known)}"
    return _kind(part, known)


def _kind(text: str, known: frozenset[str]) -> str:
    if text in known:
        return text
    for pattern, kind in _FORMS:
        if pattern.fullmatch(text):
            return kind.format(len(text))
    return "<a word>" if len(text) <= _MAX_WORD_LENGTH else f"<{len(text)} characters>"
