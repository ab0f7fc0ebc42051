"""Whose turn it is: nobody who sends without pause keeps the others from being answered.

A task goes on until something waits, and whoever sends faster than we read never makes us wait. So each
connection has an account of the time it used. Who has used little goes on as soon as its bytes are there. All others,
and whoever has a second request ready, stand in one line, who used least in front: one of them goes on whenever the
process has nothing else to do, and after at most `limits.LONGEST_WAIT`. If that took long while others were being
answered, they get as much time before the next one. TLS handshakes, which cost much and prove nothing, take turns with
the line: by turns the newest, for in a flood first come, first served makes everybody late, and the oldest.
"""

import asyncio
import itertools
from collections import deque
from heapq import heappop, heappush
from time import monotonic

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

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._line: list[tuple[float, int, asyncio.Future[None]]] = []
        self._handshakes: deque[asyncio.Future[None]] = deque()
        self._was_handshake = self._was_newest = False
        self._numbers = itertools.count()
        self._is_armed = False
        self._armed_at = self._looked_at = 0.0
        self.answering = 0

    async def wait(self, debt: float) -> None:
        """Stand in line."""
        turn = self._loop.create_future()
        heappush(self._line, (debt, next(self._numbers), turn))
        self._arm()
        await turn

    async def wait_for_handshake(self) -> None:
        """Wait before a step of a TLS handshake."""
        turn = self._loop.create_future()
        self._handshakes.append(turn)
        self._arm()
        await turn

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            self._armed_at = monotonic()
            self._ask_soon()

    def _ask_soon(self) -> None:
        self._looked_at = monotonic()
        self._loop.call_soon(self._look)

    def _look(self) -> None:
        """Let one go on if the loop, in its round since `_ask_soon`, had nothing to do; or if that lasts too long."""
        now = monotonic()
        longest = limits.LONGEST_HANDSHAKE_WAIT if self._handshakes else limits.LONGEST_WAIT
        if now - self._looked_at > limits.IDLE_ROUND and now - self._armed_at < longest:
            self._ask_soon()
            return
        turn = self._first()
        if turn is None:
            self._is_armed = False
            return
        turn.set_result(None)
        self._loop.call_soon(self._rest, now)  # after the one has finished its turn or waits again

    def _rest(self, began: float) -> None:
        self._is_armed = False
        if not self._line and not self._handshakes:
            return
        took = monotonic() - began
        if self.answering and took > limits.TURN / 2:
            self._is_armed = True
            self._loop.call_later(min(took, limits.LONGEST_PAUSE), self._resume)
        else:
            self._arm()

    def _resume(self) -> None:
        self._is_armed = False
        self._arm()

    def _first(self) -> asyncio.Future[None] | None:
        """Return the first whose task still waits."""
        while self._line or self._handshakes:
            self._was_handshake = bool(self._handshakes) and not (self._was_handshake and self._line)
            if self._was_handshake:
                self._was_newest = not self._was_newest
                turn = self._handshakes.pop() if self._was_newest else self._handshakes.popleft()
            else:
                turn = heappop(self._line)[2]
            if not turn.done():
                return turn
        return None
