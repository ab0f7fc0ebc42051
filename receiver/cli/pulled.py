"""Events of a pull and its progress, for `hookonce dev --from` and `hookonce listen`."""

import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import ValidationError

from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.desk.feeds.transfer import ExportedEvent, why_refused
from hookonce.receiver.remote.profiles import Profile
from hookonce.receiver.remote.pull import Wanted

E = TypeVar("E", bound=ExportedEvent)

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


def file_name(kind: str, profile: Profile, wanted: Wanted, *more: str) -> str:
    """Return the name of a cursor's file: another for another inbox, filter, or what there is `more` to it."""
    said = "\0".join((profile.url, wanted.source or "", wanted.type or "", *more))
    return f"{kind}-{hashlib.sha256(said.encode()).hexdigest()[:16]}.json"


class Skipped(Exception):  # noqa: N818  a state of the world
    """An event is not taken; `kind` is as it is counted, and the text is told, if there is any."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(text)
        self.kind = kind


def read(model: type[E], shown: Mapping[str, Any]) -> E:
    """Return a pulled event. Raises: `Skipped` for one without a body, and for what can't be an event."""
    if (missing := shown.get("missing")) is not None:
        raise Skipped(_MISSING.get(str(missing), "without a body"))
    try:
        return model.model_validate(shown)
    except ValidationError as error:
        raise Skipped(ODD, f"an event is {ODD}: {clean(why_refused(error))}") from None


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

    def skip(self, skipped: Skipped) -> None:
        """Count an event that is not taken, and tell why; of those that are `ODD` for the first."""
        if (text := str(skipped)) and not (skipped.kind == ODD and self._counts.get(ODD)):
            self._tell(text)
        self.add(skipped.kind)

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
