"""Dead runs that died of one cause: the same handler, and an error that differs in ids and numbers only."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from hookonce.receiver.ledger.queries.dead_letters import Death

_MAX_PATTERN_LENGTH = 200
# What differs from event to event within one cause: ids, numbers, hashes, addresses.
_VARIES = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22,}|\b0x[0-9a-fA-F]+|\b[0-9a-fA-F]{12,}\b"
    r"|\b[a-z]{2,6}_(?=\w*\d)\w{6,}|\d+"
)


@dataclass(slots=True)
class Group:
    """Dead runs of one handler whose errors differ in ids and numbers only; `pattern` has `*` for those."""

    handler: str | None
    pattern: str
    example: str
    events: set[int] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    newest: datetime | None = None


def grouped(found: Iterable[Death]) -> list[Group]:
    """Group dead runs, the largest group first."""
    groups: dict[tuple[str | None, str], Group] = {}
    for death in found:
        error = (death.error or "").strip()
        pattern = pattern_of(error) if death.handler else ""
        group = groups.setdefault((death.handler, pattern), Group(death.handler, pattern, error))
        group.events.add(death.event)
        group.sources.add(death.source)
        group.newest = max(filter(None, (group.newest, death.finished_at or death.received_at)))
    return sorted(groups.values(), key=lambda group: (-len(group.events), group.handler or "", group.pattern))


def pattern_of(error: str) -> str:
    """Return the beginning of an error with `*` for what varies within one cause, and for the rest."""
    line = error.splitlines()[0][:_MAX_PATTERN_LENGTH] if error else ""
    return re.sub(r"\*[*\s]*\*", "*", _VARIES.sub("*", line) + "*")
