"""Envelopes: the headers of a sender's deliveries besides signature, id and type, from `envelopes.json`.

A value is a text with `{id}`, `{type}`, `{object}` and `{done}` (the type before and behind its last dot), `{now}` (ISO
8601), `{seconds}` (Unix) and `{uuid}` (of the event, so the same on a retry), and with places in the body,
`{$.repository.id}`; a header whose place is not there is left out. Of signatures that the sender sends besides the one
that is looked at: `{sha1}` and `{sha256}`, the HMAC of the body in hex, and `{sha256_of_both}`, the hash of secret and
body.
"""

import hmac
import json
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from hookonce.providers.kit import json_paths

_EVENTS: Final = uuid.UUID("5b7f1c56-0c1a-4e0e-9a51-5e0c6f3d2b1a")
_PART: Final = re.compile(r"\{(.*?)\}")


def envelope(provider: str, body: Any, words: Mapping[str, str]) -> dict[str, str]:  # noqa: ANN401
    """Return the headers of one delivery; none of a sender of which no more is known than what `sign` makes.

    `words` are those of `words_of` and of `signatures_of`, and what stands for `{…}`.
    """
    made: dict[str, str] = {}
    for name, value in _envelopes().get(provider, {}).items():
        parts = {part: _part(part, name, body, words) for part in _PART.findall(value)}
        if None not in parts.values():
            made[name] = _PART.sub(lambda part: str(parts[part[1]]), value)  # noqa: B023  called at once
    return made


def _part(part: str, header: str, body: Any, words: Mapping[str, str]) -> str | int | None:  # noqa: ANN401
    if part == "uuid":
        return str(uuid.uuid5(_EVENTS, f"{header} {words['id']}"))
    if not part.startswith("$"):
        return words[part]
    found = json_paths.find(body, json_paths.parse(part))
    return found if isinstance(found, str | int) else None


def words_of(type: str, event_id: str, now: datetime) -> dict[str, str]:  # noqa: A002
    """Return what is known of an event."""
    before, _, done = type.rpartition(".")
    moment = now.astimezone(UTC)
    return {
        "id": event_id,
        "type": type,
        "object": before,
        "done": done,
        "now": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z",
        "seconds": str(int(now.timestamp())),
    }


def signatures_of(body: bytes, secret: str) -> dict[str, str]:
    """Return the signatures that some send besides."""
    key = secret.encode("utf-8", "surrogateescape")
    return {
        "sha1": hmac.digest(key, body, "sha1").hex(),
        "sha256": hmac.digest(key, body, "sha256").hex(),
        "sha256_of_both": sha256(key + body).hexdigest(),
    }


@cache
def _envelopes() -> Mapping[str, Mapping[str, str]]:
    text = (files(__package__) / "envelopes.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, str]] = json.loads(text)
    return found
