"""Whose turn it is: nobody who sends without pause keeps the others from being answered.

gevent switches only where something waits, and whoever sends faster than we read never makes us wait. So each
connection has an account of the time it used. Who has used little goes on as soon as its bytes are there. All others,
and whoever has a second request ready, stand in one line, who used least in front: one of them goes on whenever the
process has nothing else to do, and after at most `limits.LONGEST_WAIT`. If that took long while others were being
answered, they get as much time before the next one. TLS handshakes, which cost much and prove nothing, take turns with
the line: by turns the newest, for in a flood first come, first served makes everybody late, and the oldest.
"""

import itertools
from collections import deque
from heapq import heappop, heappush
from time import monotonic
from typing import Any

from gevent.hub import Waiter

from hookonce.receiver.web.http import limits


class Account:
    """The time that a connection has used, as far as it is not forgiven; `debt` in seconds."""

    __slots__ = ("_paid", "_since", "debt")

    def __init__(self) -> None:
        self.debt = 0.0
        self._since = self._paid = monotonic()

    def resume(self) -> None:
        """Begin to count: the connection goes on after it waited."""
        self._since = monotonic()

    def pause(self) -> None:
        """Charge what was used since `resume`: the connection will wait."""
        now = monotonic()
        forgiven = (now - self._paid) * limits.ALLOWANCE_A_SECOND
        self._paid = now
        self.debt = max(0.0, self.debt - forgiven) + now - self._since
        self._since = now

    @property
    def is_over(self) -> bool:
        """Whether the turn has taken long enough."""
        return monotonic() - self._since > limits.TURN

    @property
    def is_small(self) -> bool:
        """Whether the connection may go on without standing in line."""
        return self.debt < limits.ALLOWANCE


class Turns:
    """The line of a process. `answering` counts the requests under way of those who need not stand in it."""

    def __init__(self, hub: Any) -> None:  # noqa: ANN401  gevent has no types
        self._hub = hub
        self._idle = hub.loop.idle()
        self._timer: Any = None
        self._line: list[tuple[float, int, Waiter]] = []
        self._handshakes: deque[Waiter] = deque()
        self._was_handshake = self._was_newest = False
        self._numbers = itertools.count()
        self.answering = 0

    def wait(self, debt: float) -> None:
        """Stand in line."""
        waiter = Waiter(self._hub)
        heappush(self._line, (debt, next(self._numbers), waiter))
        self._arm()
        waiter.get()

    def wait_for_handshake(self) -> None:
        """Wait before a step of a TLS handshake."""
        waiter = Waiter(self._hub)
        self._handshakes.append(waiter)
        self._arm()
        waiter.get()

    def _arm(self) -> None:
        if self._timer is None:
            waits = limits.LONGEST_HANDSHAKE_WAIT if self._handshakes else limits.LONGEST_WAIT
            self._timer = self._hub.loop.timer(waits)
            self._timer.start(self._next)
            self._idle.start(self._next)

    def _next(self) -> None:
        """Let one go on; runs in the hub, so when this is back the one has finished its turn or waits again."""
        self._disarm()
        if not self._line and not self._handshakes:
            return
        began = monotonic()
        self._first().switch(None)
        took = monotonic() - began
        if not self._line and not self._handshakes:
            return
        if self.answering and took > limits.TURN / 2 and self._timer is None:
            self._timer = self._hub.loop.timer(min(took, limits.LONGEST_PAUSE))
            self._timer.start(self._resume)
        else:
            self._arm()

    def _resume(self) -> None:
        self._disarm()
        self._arm()

    def _disarm(self) -> None:
        self._idle.stop()
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None

    def _first(self) -> Waiter:
        self._was_handshake = bool(self._handshakes) and not (self._was_handshake and self._line)
        if not self._was_handshake:
            return heappop(self._line)[2]
        self._was_newest = not self._was_newest
        return self._handshakes.pop() if self._was_newest else self._handshakes.popleft()
