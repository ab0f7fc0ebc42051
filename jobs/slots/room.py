"""What a claim may start: as much as slots are free, slow handlers in all but one of them, if others may be quick.

A handler that was never tried may be either: one of its runs is started wherever there is a slot, the others count as
slow until that one has ended.
"""

from collections.abc import Collection
from datetime import timedelta

from hookonce.jobs.handlers import SLOW_AFTER, Registry


class SlotRoom:
    """The room of one claim: `free` runs start with it, `slow` may be slow; handlers `under_way` have some already.

    An event is leased with all its runs. If more of them are slow than there is room for, nothing starts with the
    claim (`free` is 0 then): what may start is chosen run by run.
    """

    def __init__(self, registry: Registry, free: int, slow: int, under_way: Collection[str]) -> None:
        self.free = free
        self._registry = registry
        self._slow = slow
        self._tried = set(under_way)

    def fits(self, source: str, provider: str, type: str) -> bool:  # noqa: A002
        """Return whether there is room for such an event; if so, it is taken."""
        matching = self._registry.matching(source, provider, type)
        names = {handler.name for handler in matching if not handler.batch}
        slow = {name for name in names if is_slow(self._registry.took(name), is_tried=name in self._tried)}
        if slow and self._slow <= 0:
            return False
        if len(slow) > self._slow:
            self.free = 0
        untried = {name for name in names - slow if self._registry.took(name) is None}
        self._tried |= untried
        self._slow -= len(slow) + len(untried)
        return True


def is_slow(took: timedelta | None, *, is_tried: bool) -> bool:
    """Return whether a handler counts as slow that took so long, or is being tried for the first time."""
    return is_tried if took is None else took > SLOW_AFTER
