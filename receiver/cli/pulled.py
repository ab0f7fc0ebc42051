"""Progress and origin of a pull, for `hookonce dev --from` and `hookonce listen`."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from hookonce.receiver.cli.output.tables import clean

ORIGIN, RECEIVED_AT, REDACTED = "hookonce-origin", "hookonce-received-at", "hookonce-redacted"
"""Headers that a pulled event has besides its own."""
STATUS_EVERY = timedelta(seconds=5)
"""Between two lines that say how far it is."""
QUIET_EVERY = timedelta(minutes=1)
"""Between two such lines while nothing changes."""
ODD = "not as expected"
"""How an event is counted that can't be one."""
_MISSING = {"retention": "without a body", "key": "sealed", "scope": "not allowed to leave"}
"""Reasons of the other inbox for an event without a body, in words."""


def origin_headers(inbox: str, shown: Mapping[str, object]) -> dict[str, str]:
    """Return the headers that say from which inbox a pulled event came, and what was done to it."""
    said = {ORIGIN: f"{inbox} {shown.get('id')}", RECEIVED_AT: str(shown.get("received_at"))}
    if shown.get("is_redacted"):
        said[REDACTED] = "yes"
    return {name: clean(text) for name, text in said.items()}


def why_missing(shown: Mapping[str, object]) -> str | None:
    """Return why a pulled event has no body; None of one that has."""
    missing = shown.get("missing")
    return None if missing is None else _MISSING.get(str(missing), "without a body")


class Status:
    """Says every few seconds how many events were taken, how many were skipped and why, and how many are behind."""

    def __init__(self, tell: Callable[[str], None], *first: str) -> None:
        """Tell by `tell`; the kinds `first` are told even while there are none."""
        self._tell = tell
        self._first = first
        self._counts: dict[str, int] = {}
        self._said = ""
        self._said_at = float("-inf")

    def add(self, kind: str, number: int = 1) -> None:
        """Count."""
        self._counts[kind] = self._counts.get(kind, 0) + number

    def say(self, behind: int, *, is_last: bool = False) -> None:
        """Tell, unless it was told just now."""
        kinds = [*self._first, *(kind for kind in self._counts if kind not in self._first)]
        counts = ", ".join(
            f"{self._counts.get(kind, 0)} {clean(kind)}"
            for kind in kinds
            if kind in self._first or self._counts[kind]
        )
        line = f"{counts}; that is all of it" if is_last else f"{counts}, {behind} behind"
        now = time.monotonic()
        pause = QUIET_EVERY if line == self._said else STATUS_EVERY
        if is_last or now - self._said_at >= pause.total_seconds():
            self._said, self._said_at = line, now
            self._tell(line)
