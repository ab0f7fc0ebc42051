"""What the slots of a process are at, and what may be started or leased besides.

Slow handlers get all slots but one, which is kept for quick ones, if there are handlers that are, or may be.
"""

import threading
import time
from collections.abc import Callable, Sequence

from hookonce.jobs.handlers import SLOW_AFTER, Registry
from hookonce.jobs.report import UnderWay
from hookonce.jobs.slots.pace import Pace
from hookonce.jobs.slots.room import SlotRoom, is_slow
from hookonce.jobs.slots.shelf import Shelf
from hookonce.jobs.slots.slot import Slot
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

_AHEAD = 25
"""Leased runs below which more are claimed, where more are due: at most, for others might run them meanwhile."""
_AHEAD_SPAN = 0.1
"""Seconds within which what is leased ahead should be started, at the pace at which slots take it."""


class Occupancy:
    """The slots of one process, counted; for all its threads, but for a claim, of which there is one at a time."""

    def __init__(self, registry: Registry, slots: Sequence[Slot], shelf: Shelf) -> None:
        self._registry = registry
        self._slots = slots
        self._shelf = shelf
        self._slow_pace = Pace()
        self._lock = threading.Lock()
        self._reserved = 0  # slots that a claim under way may start slow runs in

    def under_way(self) -> list[UnderWay]:
        """Return what the slots are at."""
        return [at for slot in self._slots if (at := slot.under_way) is not None]

    def room(self, free: int) -> SlotRoom:
        """Return the room that a claim has; until `end_claim` nobody else takes it."""
        with self._lock:
            slow = max(min(free, self._for_slow() - self._count_slow()), 0)
            self._reserved = slow
        ahead = max(self._slow_ahead() - len(self._shelf), 0)
        return SlotRoom(
            self._registry, len(self._slots), slow + ahead, {at.run.handler for at in self.under_way()}
        )

    def end_claim(self) -> None:
        """Hear that what was claimed has been started, or that nothing was."""
        self._reserved = 0

    def take(self, may_start: Callable[[ClaimedRun], bool], ending: Slot | None = None) -> ClaimedRun | None:
        """Take what may be started next from the shelf, for a slot that is free or `ending` what it is at."""
        with self._lock:
            has_room = self._count_slow(ending) + self._reserved < self._for_slow()
            run = self._shelf.take(
                lambda run: may_start(run) and (has_room or not self._may_be_slow(run.handler))
            )
            if ending is not None:
                ending.following = run
        if ending is not None and (at := ending.under_way) is not None and self._is_slow(at.run):
            self._slow_pace.note()
        return run

    @property
    def wants_more(self) -> bool:
        """Whether so few runs are leased ahead that more should be claimed."""
        least = self._slow_ahead() // 2 if self._count_slow() else _AHEAD
        return len(self._shelf) < least

    def _for_slow(self) -> int:
        """Return how many slots slow handlers may have."""
        tried = {at.run.handler for at in self.under_way()}
        is_kept = any(
            not is_slow(self._registry.took(each.name), is_tried=each.name in tried)
            for each in self._registry
            if not each.batch
        )
        return len(self._slots) - is_kept

    def _slow_ahead(self) -> int:
        """Return how many runs of slow handlers may be leased and wait for a slot: as many as will be started soon."""
        return min(int(self._slow_pace.rate() * _AHEAD_SPAN), _AHEAD)

    def _count_slow(self, but: Slot | None = None) -> int:
        """Count the slots that are at something slow, or about to be, as far as is known; without one."""
        least = time.monotonic() - SLOW_AFTER.total_seconds()
        return sum(
            at.began < least or self._is_slow(at.run) or self._is_slow(slot.following)
            for slot in self._slots
            if slot is not but and (at := slot.under_way) is not None
        )

    def _is_slow(self, run: ClaimedRun | None) -> bool:
        return run is not None and is_slow(self._registry.took(run.handler), is_tried=True)

    def _may_be_slow(self, handler: str) -> bool:
        """Return whether a handler counts as slow that is not under way: one that was never tried may be tried once."""
        took = self._registry.took(handler)
        return is_slow(
            took, is_tried=took is None and any(at.run.handler == handler for at in self.under_way())
        )
