"""The plans of `other_handlers`, and what the world outside has seen of them."""

from pathlib import Path

from tests.support.stories.history import Plan

GATHER = Plan("gather", "depot", "pallet.*", 10)
HAUL = Plan("haul", "depot", "truck.*", 10, is_long=True)
WEIGH = Plan("weigh", "depot", "scale.*", 10)
PAY = Plan("pay", "depot", "order.*", 10)
OTHER_PLANS = (GATHER, HAUL, WEIGH, PAY)

MOST, WAIT = 50, "100ms"
PLACES = 3
RATE, PERIOD = 1200, 60.0
"""Of `weigh`: starts, in so many seconds."""
LOCKS = 4_711
"""A number of advisory locks that nobody else uses."""


class World:
    """What the world outside has seen."""

    def __init__(self, place):
        self._place = Path(place)

    def _lines(self, journal):
        path = self._place / journal
        return path.read_text().splitlines() if path.exists() else []

    def mistakes(self, kills):
        """What nobody outside should have seen; whoever was killed after his start may start again at his own time."""
        charges = [event_id for event_id, _ in self._charges()]
        if more := len(charges) - len(set(charges)):
            yield f"{more} charges were made twice"
        if crowded := self._lines("crowded"):
            yield f"{len(crowded)} times more than {PLACES} were at work at once"
        if (found := self.most_weighed()) > RATE + PLACES * kills:
            yield f"{found} starts within a minute, {RATE} may be"

    def has_charged(self, key):
        """Whether a charge was made under this key."""
        return any(charged == key for _, charged in self._charges())

    def _charges(self):
        """The charges there were, as (event id, key)."""
        return [line.split(" ", 1) for line in self._lines("charges")]

    def most_weighed(self):
        """Starts of the limited handler within one period, at most."""
        times = sorted(map(float, self._lines("weighed")))
        first = most = 0
        for number, at in enumerate(times):
            while at - times[first] >= PERIOD:
                first += 1
            most = max(most, number - first + 1)
        return most

    def forget(self):
        """Forget it."""
        for journal in ("charges", "crowded", "weighed"):
            (self._place / journal).unlink(missing_ok=True)

    def counts(self):
        """How often each was done, in words."""
        return f"{len(self._lines('charges'))} charges, {len(self._lines('weighed'))} within the limits"
