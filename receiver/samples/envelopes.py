"""What a sender's deliveries have in their headers besides the signature, id and type: `envelopes.json`.

A value is a text with `{id}`, `{type}`, `{object}` and `{done}` (the type before and behind its last dot), `{now}` (ISO
8601), `{seconds}` (Unix) and `{uuid}` (of the event, so the same on a retry). Or it is a place in the body,
`$.repository.id`; a header whose place is not there is left out.
"""

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from hookonce.providers.kit import json_paths

_EVENTS: Final = uuid.UUID("5b7f1c56-0c1a-4e0e-9a51-5e0c6f3d2b1a")


def envelope(provider: str, type: str, event_id: str, body: Any, now: datetime) -> dict[str, str]:  # noqa: A002, ANN401
    """Return the headers of one delivery; none of a sender of which no more is known than what `sign` makes."""
    before, _, done = type.rpartition(".")
    moment = now.astimezone(UTC)
    words = {
        "id": event_id,
        "type": type,
        "object": before,
        "done": done,
        "now": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z",
        "seconds": str(int(now.timestamp())),
    }
    made: dict[str, str] = {}
    for name, value in _envelopes().get(provider, {}).items():
        if not value.startswith("$"):
            made[name] = value.format(**words, uuid=uuid.uuid5(_EVENTS, f"{name} {event_id}"))
        elif isinstance(found := json_paths.find(body, json_paths.parse(value)), str | int):
            made[name] = str(found)
    return made


@cache
def _envelopes() -> Mapping[str, Mapping[str, str]]:
    text = (files(__package__) / "envelopes.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, str]] = json.loads(text)
    return found
