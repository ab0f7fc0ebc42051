"""What a claim may start: as much as slots are free, slow handlers in all but one of them, if others may be quick.

A handler that was never tried may be either: one of its runs is started wherever there is a slot, the others count as
slow until that one has ended.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta

from hookonce.jobs.handlers import SLOW_AFTER, Registry

QUICK, SLOW = 0, 1
"""Lanes: runs of slow handlers, which may have to wait for a slot, keep no others waiting."""


class SlotRoom:
    """The room of one claim: `slow` runs of it may be slow; handlers `under_way` have some already."""

    def __init__(self, registry: Registry, slots: int, slow: int, under_way: Collection[str]) -> None:
        self.slots = slots
        self._registry = registry
        self._slow = slow
        self._tried = set(under_way)

    def lanes(self, handlers: Sequence[str]) -> Sequence[int | None]:
        """Return the lane of each of these runs, None for those that there is no room for."""
        return [self._lane(name) for name in handlers]

    def _lane(self, name: str) -> int | None:
        took = self._registry.took(name)
        may_be_slow = took is None or is_slow(took, is_tried=True)
        if not may_be_slow:
            return QUICK
        if is_slow(took, is_tried=name in self._tried) and self._slow <= 0:
            return None
        self._tried.add(name)
        self._slow -= 1
        return SLOW


def is_slow(took: timedelta | None, *, is_tried: bool) -> bool:
    """Return whether a handler counts as slow that took so long, or is being tried for the first time."""
    return is_tried if took is None else took > SLOW_AFTER
