"""Turns of connections: nobody who sends without pause keeps the others from being answered.

A task goes on until something waits, and a client that sends faster than we read never makes us wait. So each
connection has an account of the time it used, and its client has one (`clients`). A connection that has used little, of
a client that has, goes on as soon as its bytes are there. All others, and those with a second request ready, stand in
one line, the client that owes least in front and of its connections the one that does: one of them goes on whenever
the process has nothing else to do, and after at most `limits.LONGEST_WAIT`. If that took long while others were being
answered, they get as much time before the next one. TLS handshakes, which cost much and prove nothing, take turns with
the line: the client's that owes least, of its own by turns the newest, for in a flood first come, first served makes
everybody late, and the oldest.
"""

import asyncio
import itertools
from collections import deque
from heapq import heappop, heappush
from time import monotonic

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.clients import Client, Clients


class Account:
    """The time that a connection of a client has used, as far as it is not forgiven; `debt` in seconds."""

    __slots__ = ("_clients", "_paid", "_since", "client", "debt", "is_genuine")

    def __init__(self, client: Client, clients: Clients) -> None:
        self.client = client
        self._clients = clients
        self.debt = 0.0
        self.is_genuine = False
        self._since = self._paid = monotonic()

    def resume(self) -> None:
        """Begin to count: the connection goes on after it waited."""
        self._since = monotonic()

    def pause(self) -> None:
        """Charge what was used since `resume`: the connection will wait."""
        now = monotonic()
        forgiven = (now - self._paid) * limits.ALLOWANCE_A_SECOND
        self._paid = now
        self.debt = max(0.0, self.debt - forgiven)
        self.charge(now - self._since)
        self._since = now

    def charge(self, seconds: float) -> None:
        """Charge what something cost, to the connection and to its client."""
        self.debt += seconds
        self.client.charge(seconds)

    def settle(self, *, is_genuine: bool, is_replay: bool) -> None:
        """Charge a request that is answered; a delivery that is verified and new pays for its connection's debt.

        A known one leaves the connection what it was, and costs its client something.
        """
        if not is_genuine:
            self.is_genuine = False
            self.charge(limits.REQUEST_COST)
        elif is_replay:
            self.client.charge(limits.REPLAY_COST)
        else:
            self.is_genuine = True
            self.debt = 0.0
            self.client.earn()
        self.resume()

    @property
    def place(self) -> tuple[float, float]:
        """The place in the line, by which it is ordered."""
        return self.client.debt, self.debt

    @property
    def is_over(self) -> bool:
        """Whether the turn has taken long enough."""
        return monotonic() - self._since > limits.TURN

    @property
    def is_small(self) -> bool:
        """Whether the connection may go on without standing in line."""
        if self.debt >= limits.ALLOWANCE:
            return False
        return self.is_genuine or self.client.is_small or not self._clients.are_many


class Turns:
    """The line of a process. `answering` counts the requests under way of those who need not stand in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._line: list[tuple[tuple[float, float], int, asyncio.Future[None]]] = []
        self._handshakes: dict[Client, deque[asyncio.Future[None]]] = {}
        self._was_handshake = self._was_newest = False
        self._numbers = itertools.count()
        self._is_armed = False
        self._armed_at = self._looked_at = 0.0
        self.answering = 0

    async def wait(self, place: tuple[float, float]) -> None:
        """Stand in line."""
        turn = self._loop.create_future()
        heappush(self._line, (place, next(self._numbers), turn))
        self._arm()
        await turn

    async def wait_for_handshake(self, client: Client) -> None:
        """Wait before a step of a TLS handshake, which the client is charged for."""
        turn = self._loop.create_future()
        self._handshakes.setdefault(client, deque()).append(turn)
        self._arm()
        await turn
        client.charge(limits.HANDSHAKE_COST)

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
            turn = self._first_handshake() if self._was_handshake else heappop(self._line)[2]
            if not turn.done():
                return turn
        return None

    def _first_handshake(self) -> asyncio.Future[None]:
        client = min(self._handshakes, key=lambda each: each.debt)
        waiting = self._handshakes[client]
        self._was_newest = not self._was_newest
        turn = waiting.pop() if self._was_newest else waiting.popleft()
        if not waiting:
            del self._handshakes[client]
        return turn
