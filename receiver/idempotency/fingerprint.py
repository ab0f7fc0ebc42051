"""Whether two requests are the same one: a digest of what they ask for, however it is written.

Of a JSON body counts what it says: the order of its members, spaces, escapes and the spelling of its numbers
(1, 1.0, 10e-1) do not. Of a form with files all counts but its boundary, which is another at each try. Any other body
counts byte by byte. Headers count if they are chosen, and nothing else does.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

_MAX_DEPTH = 64
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_BOUNDARY = re.compile(
    r'\s*multipart/[^;]*;(?:[^;]*;)*?\s*boundary=(?:"(?P<quoted>[^"]+)"|(?P<bare>[^\s;"]+))', re.IGNORECASE
)
_FEWEST_PARTS = 2
"""What is before the last boundary, and what is after it: a form without fields."""
_VERSION = "1"
"""Of this rule: with another one, keys of before are told apart rather than compared wrongly."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, as far as it tells requests apart; `headers` are the chosen ones, `version` is the API's."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = ""
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    version: str = ""

    def fingerprint(self) -> bytes:
        """Return the SHA-256 of all that."""
        body = (canonical(self.body) if is_json(self.content_type) else None) or self.body
        body = without_boundary(self.body, self.content_type) or body
        chosen = sorted((name.lower(), value.strip()) for name, value in self.headers.items())
        texts = [_VERSION, self.method.upper(), self.path, self.query, self.version, json.dumps(chosen)]
        digest = hashlib.sha256()
        for part in (*(each.encode(errors="surrogatepass") for each in texts), body):
            digest.update(b"%d:" % len(part) + part)
        return digest.digest()


def is_json(content_type: str) -> bool:
    """Whether a content type is that of JSON, `application/problem+json` and its like among them."""
    return _JSON.fullmatch(content_type.partition(";")[0].strip()) is not None


def without_boundary(body: bytes, content_type: str) -> bytes | None:
    """Return the parts of a multipart body, each with its length; None for what is none."""
    found = _BOUNDARY.match(content_type)
    if found is None:
        return None
    parts = body.split(b"--" + (found["quoted"] or found["bare"]).encode("latin-1", errors="replace"))
    if len(parts) < _FEWEST_PARTS:
        return None
    return b"multipart " + b"".join(b"%d:" % len(part) + part for part in parts)


def canonical(body: bytes) -> bytes | None:
    """Return one spelling for all that say the same; None for what is not JSON, or too deep, or says one name twice."""
    try:
        document = json.loads(
            body.decode(),
            parse_int=Decimal,
            parse_float=Decimal,
            parse_constant=_refuse,
            object_pairs_hook=_members,
        )
        return _spelled(document, 0).encode()
    except (ValueError, RecursionError, InvalidOperation):
        return None


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("one name twice: readers differ on which one counts")
    return found


def _spelled(value: Any, depth: int) -> str:  # noqa: ANN401  any JSON
    if depth >= _MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}:{_spelled(value[name], depth + 1)}" for name in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_spelled(each, depth + 1) for each in value) + "]"
    return _number(value) if isinstance(value, Decimal) else json.dumps(value)


def _number(value: Decimal) -> str:
    """Spell a number without zeros that say nothing, exactly: no digit is rounded away."""
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    shorter = text.rstrip("0")
    if not shorter:
        return "0"
    return f"{'-' * sign}{shorter}e{int(exponent) + len(text) - len(shorter)}"
