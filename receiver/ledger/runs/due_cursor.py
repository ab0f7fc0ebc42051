"""The cursor in the queue of due events, which says where somebody looks next; no SQL here.

Entries of the index that are dead, but not yet vacuumed (somebody holds a snapshot), lie before those that are due,
one for each run that was handled. They are passed over by looking from the due time on that was found last: from two
seconds before it, for what was committed late, and every few seconds from the beginning. To walk a million of them
takes a second: the longer such looks take, the more seldom they are made, and others go back a tenth of a second only.
Every quarter of a minute they are made in any case: nothing else finds what was parked for long and is taken up again.

Runs of events of one kind, a million of them, would have all that come later wait: while such a crowd is at the head of
the queue, every other look is for what else has come lately.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from hookonce.receiver.ledger.runs.claimed import QueuedRun

FULL_LOOK_INTERVAL = timedelta(seconds=5)
"""How often what was made due at any time before is looked for."""
LATE = timedelta(seconds=2)
"""How much earlier than what was found last an event may be due that was committed only after it."""
_NEARLY = timedelta(milliseconds=100)
"""The same for every look."""
_SHARE = 0.05
"""Of the time that looks of a kind may take which pass over much."""
_ADVANCE = 0.1
"""Seconds of it that may be used at once."""
_LONGEST_PAUSE = 15.0
"""Seconds until the next, however long one took: a server may have held it up."""
_CROWD_SHARE = 4

Kind = tuple[str, str]
"""Source and type."""


class Look(NamedTuple):
    """The rows to read: events due since a time (None: ever), or what came last, those of some kinds left out."""

    since: datetime | None = None
    beside: Sequence[Kind] = ()


class Paced:
    """Says when it is time for another look of a kind: every `interval`, and the more seldom the longer they take."""

    def __init__(self, interval: timedelta, clock: Callable[[], float]) -> None:
        self._interval = interval.total_seconds()
        self._clock = clock
        self._next_at = 0.0
        self._left = _ADVANCE  # seconds that looks may take now
        self._counted_at = clock()
        self._began: float | None = None

    def begin(self) -> bool:
        """Return whether it is time for one; if so, it begins."""
        now = self._count()
        self._began = now if now >= self._next_at and self._left > 0 else None
        return self._began is not None

    def end(self) -> None:
        """Hear that the look has ended, if one has begun."""
        if self._began is not None:
            now = self._count()
            self._left = max(self._left - (now - self._began), -_SHARE * _LONGEST_PAUSE)
            self._next_at, self._began = now + self._interval, None

    def _count(self) -> float:
        """Add what looks may take since this was done last; return the time."""
        now = self._clock()
        self._left = min(self._left + _SHARE * (now - self._counted_at), _ADVANCE)
        self._counted_at = now
        return now


class SweepMark:
    """From where on a sweep looks for anything due: it passes over what lay before that a moment ago."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._full_looks = Paced(FULL_LOOK_INTERVAL, clock)
        self._since: datetime | None = None

    def look(self) -> datetime | None:
        """Return since when to look; None: ever."""
        return None if self._full_looks.begin() else self._since

    def found(self, first: datetime) -> None:
        """Note when the first was due that was found; where nothing was, the time of the look."""
        self._full_looks.end()
        self._since = first - LATE


class DueCursor:
    """The place of one worker in the queue, kept from claim to claim."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._since: datetime | None = None
        self._full_looks = Paced(FULL_LOOK_INTERVAL, clock)
        self._late_looks = Paced(timedelta(0), clock)
        self.parking = Paced(timedelta(0), clock)
        """When to look from the beginning for what is to be parked."""
        self._crowd: Sequence[Kind] = ()
        self.has_passed_crowd = False
        """Whether what was found last is of the few behind a crowd: the crowd itself is likely to have more."""

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
        return self._since and self._since - (LATE if self._late_looks.begin() else _NEARLY)

    def found(self, look: Look, rows: Sequence[QueuedRun], limit: int) -> None:
        """Note what was found, in the order of its due time; `limit` is how much might have been."""
        self.has_passed_crowd = bool(look.beside and rows)
        if look.beside:
            self._crowd = ()
            return
        (self._full_looks if look.since is None else self._late_looks).end()
        if rows:
            self._since = rows[0].due_at
            self._crowd = _crowd(rows) if len(rows) == limit else ()


def _crowd(rows: Sequence[QueuedRun]) -> Sequence[Kind]:
    """Return the kinds of events that make up much of these rows."""
    kinds = Counter((row.event.source, row.event.type) for row in rows)
    return [kind for kind, count in kinds.items() if count * _CROWD_SHARE >= len(rows)]
