"""Texts and values to search in bodies: a text, or a place and the value there (`$.data.object.customer=cus_1`)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus

from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.reading.json_paths import Step


@dataclass(frozen=True)
class Needle:
    """A text that stands somewhere, or the value at `steps`: as it is spelled, `*` for any text, None for any value."""

    text: str | None
    steps: tuple[Step, ...] | None = None

    @cached_property
    def spellings(self) -> list[bytes]:
        """Texts of which a body holds one if this is in it; none where nothing can be said before it is read.

        URLs and forms escape a text by percent signs, JSON by a backslash.
        """
        if self.steps is None:
            text = self.text or ""
            escaped = (json.dumps(text)[1:-1], quote(text, safe=""), quote_plus(text))
            return list({each.encode() for each in (text, *escaped)})
        parts = [part for part in (self.text or "").split("*") if part]
        return [max(parts, key=len).encode(), b"\\"] if parts else []

    def is_in(self, body: bytes) -> bool:
        """Whether a body has it."""
        if self.steps is None:
            return any(each in body for each in self.spellings)
        try:
            document = json.loads(body, parse_int=str, parse_float=str)  # a number is what its digits are
        except (ValueError, RecursionError):
            return False
        return any(self._fits(value) for value in json_paths.every(document, self.steps))

    def _fits(self, value: object) -> bool:
        if self.text is None:
            return True
        if isinstance(value, dict | list):
            return False
        spelled = value if isinstance(value, str) else json.dumps(value)
        first, *parts = (self.text or "").split("*")
        return _begins_and_ends(spelled, first, parts) if parts else spelled == first


def read(typed: str) -> Needle:
    """Read what somebody typed: `$.path=value`, `$.path` for whatever is there, or a text, in quotes or without.

    Raises: ValueError for a path that can't be read.
    """
    if typed.startswith("$"):
        path, equals, value = _divided(typed)
        return Needle(value if equals else None, json_paths.parse(path))
    is_quoted = len(typed) > 2 and typed[0] == typed[-1] == '"'  # noqa: PLR2004  something is between them
    return Needle(typed[1:-1] if is_quoted else typed)


def _begins_and_ends(spelled: str, first: str, parts: Sequence[str]) -> bool:
    """Whether a text begins with `first` and goes on with the parts, each behind anything, the last at its end.

    Each part is taken where it stands first, so the time grows with the text alone: whoever sends it may want more.
    """
    *between, last = parts
    at, end = len(first), len(spelled) - len(last)
    if at > end or not (spelled.startswith(first) and spelled.endswith(last)):
        return False
    for part in between:
        found = spelled.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _divided(typed: str) -> tuple[str, str, str]:
    """Divide at the first `=` that is not in a quoted key."""
    inside = False
    for at, sign in enumerate(typed):
        inside ^= sign == "'"
        if sign == "=" and not inside:
            value = typed[at + 1 :].strip()
            return typed[:at].strip(), "=", value.strip('"') if value[:1] == '"' else value
    return typed.strip(), "", ""
