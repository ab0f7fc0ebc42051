"""How many runs a process has capacity for: what a claim may lease, and what a slot may start.

A handler that takes long must not hold up others. One slot claims its runs one at a time; of many slots slow handlers
have all but one, which is kept for quick handlers, if there are some. A handler that was never tried may be either: one
of its runs is started wherever there is a slot, the others count as slow until that one has ended.
"""

import threading
import time
from collections.abc import Collection, Sequence
from datetime import timedelta

from hookonce.jobs.buffer import Buffer, MayStart
from hookonce.jobs.handlers import SLOW_AFTER, Registry
from hookonce.jobs.slots.slot import Slot
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

QUICK, SLOW = 0, 1
"""Lanes: runs of slow handlers, which may have to wait for a slot, keep no others waiting."""
_AHEAD = 25
"""Runs in the buffer below which more are claimed, where more are due: at most, for others might run them meanwhile."""
_AHEAD_SPAN = 0.1
"""Seconds within which slow runs that are claimed ahead should be started, at the rate at which slots end them."""
_RATE_SPAN = 0.25
"""Seconds over which that rate is measured, at least."""


class OneAtATime:
    """The capacity of one slot: a run of a slow handler is claimed alone; with `quick_first` if nothing else is due."""

    slots = 1

    def __init__(self, registry: Registry) -> None:
        self.quick_first = False
        self._registry = registry

    def lanes(self, handlers: Sequence[str]) -> Sequence[int | None]:
        """Return which of these runs are claimed together."""
        slow = [is_slow(self._registry.took(name), is_tried=False) for name in handlers]
        if all(slow) or (slow[0] and not self.quick_first):
            return [None if number else QUICK for number in range(len(slow))]
        return [None if each else QUICK for each in slow]


class ClaimCapacity:
    """The capacity of one claim for many slots: `slow` of its runs may be slow; some of `tried` are under way."""

    def __init__(self, registry: Registry, slots: int, slow: int, tried: Collection[str]) -> None:
        self.slots = slots
        self._registry = registry
        self._slow = slow
        self._tried = set(tried)

    def lanes(self, handlers: Sequence[str]) -> Sequence[int | None]:
        """Return the lane of each of these runs, None for those that there is no capacity for."""
        return [self._lane(name) for name in handlers]

    def _lane(self, name: str) -> int | None:
        took = self._registry.took(name)
        if not is_slow(took, is_tried=True):
            return QUICK
        if is_slow(took, is_tried=name in self._tried) and self._slow <= 0:
            return None
        self._tried.add(name)
        self._slow -= 1
        return SLOW


class Capacity:
    """The capacity of many slots; for all their threads, but for a claim, of which there is one at a time."""

    def __init__(self, registry: Registry, slots: Sequence[Slot], buffer: Buffer) -> None:
        self._registry = registry
        self._slots = slots
        self._buffer = buffer
        self._slow_rate = Rate()
        self._lock = threading.Lock()
        self._reserved = 0  # slots that a claim under way may start slow runs in

    def of_claim(self, free: int) -> ClaimCapacity:
        """Return the capacity that a claim has; until `end_claim` no slot takes it."""
        with self._lock:
            slow = max(min(free, self._for_slow() - self._count_slow()), 0)
            self._reserved = slow
        ahead = max(self._slow_ahead() - len(self._buffer), 0)
        return ClaimCapacity(self._registry, len(self._slots), slow + ahead, self._tried())

    def end_claim(self) -> None:
        """Hear that what was claimed has been started, or that nothing was."""
        self._reserved = 0

    def take(self, may_start: MayStart, ending: Slot | None = None) -> ClaimedRun | None:
        """Take what may be started next from the buffer, for a slot that is free or `ending` what it is at."""
        if ending is not None and (at := ending.under_way) is not None and self._is_slow(at.run):
            self._slow_rate.note()
        has_capacity: bool | None = None

        def fits(run: ClaimedRun) -> bool:
            nonlocal has_capacity
            if not may_start(run):
                return False
            if not self._may_be_slow(run.handler):
                return True
            if has_capacity is None:
                has_capacity = self._count_slow(ending) + self._reserved < self._for_slow()
            return has_capacity

        with self._lock:
            run = self._buffer.take(fits)
            if ending is not None:
                ending.following = run
        return run

    @property
    def wants_more(self) -> bool:
        """Whether so few runs are in the buffer that more should be claimed."""
        count = len(self._buffer)
        if count >= _AHEAD:
            return False
        return count < self._slow_ahead() // 2 or not self._count_slow()

    def _tried(self) -> set[str]:
        """Return the handlers of the runs under way."""
        return {at.run.handler for slot in self._slots if (at := slot.under_way) is not None}

    def _for_slow(self) -> int:
        """Return how many slots slow handlers may have."""
        tried = self._tried()
        is_kept = any(
            not is_slow(self._registry.took(each.name), is_tried=each.name in tried)
            for each in self._registry
            if not each.batch
        )
        return len(self._slots) - is_kept

    def _slow_ahead(self) -> int:
        """Return how many runs of slow handlers may be claimed and wait for a slot: as many as will be started soon."""
        return min(int(self._slow_rate.per_second() * _AHEAD_SPAN), _AHEAD)

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
        return is_slow(took, is_tried=took is None and handler in self._tried())


class Rate:
    """Counts runs a second, for all threads; one of them in a while may be lost, or the rate be told twice alike."""

    def __init__(self) -> None:
        self._count = 0
        self._since = time.monotonic()
        self._rate = 0.0

    def note(self) -> None:
        """Count a run."""
        self._count += 1

    def per_second(self) -> float:
        """Return runs per second, lately."""
        now = time.monotonic()
        if now - self._since >= _RATE_SPAN:
            self._rate, self._count = self._count / (now - self._since), 0
            self._since = now
        return self._rate


def is_slow(took: timedelta | None, *, is_tried: bool) -> bool:
    """Return whether a handler counts as slow that took so long, or is being tried for the first time."""
    return is_tried if took is None else took > SLOW_AFTER
