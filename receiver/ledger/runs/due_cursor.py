"""Where in the queue of due events somebody looks next; no SQL here.

Entries of the index that are dead, but not yet vacuumed (somebody holds a snapshot), lie before those that are due, two
for each event that was handled. They are passed over by looking from the due time on that was found last: from a little
before it, now and then from further back, for what was committed late, and every few seconds from the beginning. That
takes a second where there are a million of them, and is done the more seldom the longer it takes.

Events of one kind, a million of them, would have all that come later wait: while such a crowd is at the head of the
queue, every other look is for what else has come lately.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from hookonce.receiver.ledger.runs.claimed import ClaimedEvent

FULL_LOOK_INTERVAL = timedelta(seconds=5)
"""How often what was made due at any time before is looked for."""
FULL_LOOK_SHARE = 20
"""Where that takes long, it may take one part in so many of the time."""
LATE = timedelta(seconds=2)
"""How much earlier than what was found last an event may be due that was committed only after it."""
LATE_LOOK_INTERVAL = timedelta(milliseconds=250)
"""How often it is looked for."""
_NEARLY = timedelta(milliseconds=100)
"""The same for every look."""
_CROWD_SHARE = 4

Kind = tuple[str, str]
"""Source and type."""


class Look(NamedTuple):
    """What to read: events due since a time (None: ever), or what came last, those of some kinds left out."""

    since: datetime | None = None
    beside: Sequence[Kind] = ()


class FullLooks:
    """Says when it is time to look at everything, however long that takes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_at = 0.0
        self._began: float | None = None

    def begin(self) -> bool:
        """Return whether it is time to; if so, that begins."""
        self._began = self._clock() if self._clock() >= self._due_at else None
        return self._began is not None

    def end(self) -> None:
        """Hear that what was looked for has been read, if it was everything."""
        if self._began is not None:
            now = self._clock()
            pause = max(FULL_LOOK_INTERVAL.total_seconds(), FULL_LOOK_SHARE * (now - self._began))
            self._due_at, self._began = now + pause, None


class SweepMark:
    """From where on a sweep looks for anything due: it passes over what lay before that a moment ago."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._full_looks = FullLooks(clock)
        self._since: datetime | None = None

    def look(self) -> datetime | None:
        """Return since when to look; None: ever."""
        return None if self._full_looks.begin() or self._since is None else self._since

    def found(self, first: datetime) -> None:
        """Note when the first was due that was found; where nothing was, the time of the look."""
        self._full_looks.end()
        self._since = first - LATE


class DueCursor:
    """The place of one worker in the queue, kept from claim to claim."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: datetime | None = None
        self._full_looks = FullLooks(clock)
        self._late_look_at = 0.0
        self._crowd: Sequence[Kind] = ()

    @property
    def since(self) -> datetime | None:
        """Since when there may be anything that is known of; None: ever."""
        return self._since and self._since - LATE

    def looks(self) -> Iterator[Look]:
        """Give what to read, one after the other until something is found; tell `found` of each."""
        if self._crowd:
            yield Look(beside=self._crowd)
        yield Look(since=None if self._full_looks.begin() else self._before())

    def _before(self) -> datetime | None:
        """Return a time a little before what was found last."""
        is_late_look = self._clock() >= self._late_look_at
        if is_late_look:
            self._late_look_at = self._clock() + LATE_LOOK_INTERVAL.total_seconds()
        return self._since and self._since - (LATE if is_late_look else _NEARLY)

    def found(self, look: Look, events: Sequence[ClaimedEvent], limit: int) -> None:
        """Note what was found, in the order of its due time; `limit` is how much might have been."""
        if look.beside:
            self._crowd = ()
            return
        self._full_looks.end()
        if events:
            self._since = events[0].due_at
            self._crowd = _crowd(events) if len(events) == limit else ()


def _crowd(events: Sequence[ClaimedEvent]) -> Sequence[Kind]:
    """Return the kinds that make up much of these events."""
    kinds = Counter((event.source, event.type) for event in events)
    return [kind for kind, count in kinds.items() if count * _CROWD_SHARE >= len(events)]
