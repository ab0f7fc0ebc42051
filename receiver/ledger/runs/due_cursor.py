"""Where in the queue of due events a worker looks next; no SQL here.

Two things would make a claim dear, or unfair, while much is due. Entries of the index that are dead, but not yet
vacuumed (somebody holds a snapshot), lie before those that are due: they are passed over by looking from the due
time on that was found last. And events of one kind, a million of them, would have all that come later wait: while such
a crowd is at the head of the queue, every other look is for what else has come lately.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from hookonce.receiver.ledger.runs.claimed import ClaimedEvent

FULL_LOOK_INTERVAL = timedelta(seconds=5)
"""How often what was made due even earlier is looked for."""
_CROWD_SHARE = 4

Kind = tuple[str, str]
"""Source and type."""


class Look(NamedTuple):
    """What to read: events due since about a time (None: ever), or what came last, those of some kinds left out."""

    since: datetime | None = None
    beside: Sequence[Kind] = ()


class DueCursor:
    """The place of one worker in the queue, kept from claim to claim."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: datetime | None = None
        self._full_look_at = 0.0
        self._crowd: Sequence[Kind] = ()

    @property
    def since(self) -> datetime | None:
        """When what was found last was due; nothing earlier is known of."""
        return self._since

    def looks(self) -> Iterator[Look]:
        """Give what to read, one after the other until something is found; tell `found` of each."""
        if self._crowd:
            yield Look(beside=self._crowd)
        if self._clock() >= self._full_look_at:
            self._full_look_at = self._clock() + FULL_LOOK_INTERVAL.total_seconds()
            self._since = None
        yield Look(since=self._since)

    def found(self, look: Look, events: Sequence[ClaimedEvent], limit: int) -> None:
        """Note what was found, in the order of its due time; `limit` is how much might have been."""
        if look.beside:
            self._crowd = ()
        elif events:
            self._since = events[0].due_at
            self._crowd = _crowd(events) if len(events) == limit else ()


def _crowd(events: Sequence[ClaimedEvent]) -> Sequence[Kind]:
    """Return the kinds that make up much of these events."""
    kinds = Counter((event.source, event.type) for event in events)
    return [kind for kind, count in kinds.items() if count * _CROWD_SHARE >= len(events)]
