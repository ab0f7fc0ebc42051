"""Connections, and which of them has to go: one whose time is over, and near the limit one without a request.

Of these it is the oldest of the client that has most of them: so a client with one is the last to make room, whoever
has thousands, and nobody is refused for being new. Connections on which an event was verified make room only when they
are more than half. TLS handshakes have a limit of their own, by the same rule.

One look at everybody twice a second takes the place of a timer for each wait; it happens however much is being sent.

A flood lives on what ends fast: a client that is hung up on is back at once. So who had to make room is hung up on only
after a while, its memory freed at once (`Graves`); and answers that end a connection are given at a certain pace.
"""

from collections import deque
from collections.abc import Iterator
from time import monotonic
from typing import Any

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.clients import Client

Connection = Any
"""A connection (`connection.Connection`), which imports what this module does."""


class ByClient:
    """Connections by client, each client's in the order in which they came; adding and taking one out is O(1)."""

    def __init__(self) -> None:
        self._of: dict[Client, dict[Connection, None]] = {}
        self._client_of: dict[Connection, Client] = {}
        self._with: dict[int, dict[Client, None]] = {}
        self._most = 0

    def __len__(self) -> int:
        return len(self._client_of)

    def __contains__(self, member: Connection) -> bool:
        return member in self._client_of

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._client_of))

    def add(self, member: Connection) -> None:
        """Add a connection as its client's youngest."""
        if member in self._client_of:
            self.discard(member)
        client = self._client_of[member] = member.client
        mine = self._of.setdefault(client, {})
        mine[member] = None
        self._count(client, len(mine) - 1, len(mine))
        self._most = max(self._most, len(mine))

    def discard(self, member: Connection) -> bool:
        """Take a connection out; False if it was not in."""
        client = self._client_of.pop(member, None)
        if client is None:
            return False
        mine = self._of[client]
        del mine[member]
        self._count(client, len(mine) + 1, len(mine))
        if not mine:
            del self._of[client]
        if self._most not in self._with:
            self._most -= 1
        return True

    def take_first_to_go(self) -> Connection | None:
        """Take out the oldest of the client that has most; of several such clients, of the one that has for longest."""
        if not self._client_of:
            return None
        member = next(iter(self._of[next(iter(self._with[self._most]))]))
        self.discard(member)
        return member

    def _count(self, client: Client, before: int, after: int) -> None:
        if before:
            del self._with[before][client]
            if not self._with[before]:
                del self._with[before]
        if after:
            self._with.setdefault(after, {})[client] = None


class Crowd:
    """The connections of a process, `size` at most. `heads_size` is how many bytes of unfinished heads they hold."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.heads_size = 0
        self._members: set[Connection] = set()
        self._strangers = ByClient()
        self._genuine = ByClient()
        self._handshakes = ByClient()

    def __len__(self) -> int:
        return len(self._members)

    def enter(self, member: Connection) -> None:
        """Add a connection that has no request yet."""
        self._members.add(member)
        self._strangers.add(member)

    def leave(self, member: Connection) -> None:
        """Forget a connection."""
        self._members.discard(member)
        self.has_shaken_hands(member)
        self.works(member)

    def shakes_hands(self, member: Connection) -> None:
        """Note that it begins a TLS handshake; one goes if there are too many."""
        self._handshakes.add(member)
        if len(self._handshakes) > limits.HANDSHAKES:
            first = self._handshakes.take_first_to_go()
            if first is not None:
                self._strangers.discard(first)
                first.evict()

    def has_shaken_hands(self, member: Connection) -> None:
        """Note that its handshake is over."""
        self._handshakes.discard(member)

    def rests(self, member: Connection) -> None:
        """Note that it has no request any more."""
        (self._genuine if member.is_genuine else self._strangers).add(member)

    def works(self, member: Connection) -> None:
        """Note that it has a request: it may stay, however many come."""
        if not self._strangers.discard(member):
            self._genuine.discard(member)

    def holds(self, more: int) -> None:
        """Note that so many bytes more of unfinished heads are kept; the longest-waiting go if that is too much."""
        self.heads_size += more
        if more > 0 and self.heads_size > limits.HEADS_SIZE:
            self.make_room()

    def make_room(self) -> bool:
        """End one that is without a request, a stranger unless the others are more than half; False if all have one."""
        are_most = 2 * len(self._genuine) > self.size
        for waiting in (self._genuine, self._strangers) if are_most else (self._strangers, self._genuine):
            member = waiting.take_first_to_go()
            if member is not None:
                member.evict()
                return True
        return False

    def look(self, now: float) -> None:
        """End those whose time is over."""
        for member in [each for each in self._members if each.is_late(now)]:
            member.expire()

    def wake(self) -> None:
        """Wake those that have no request."""
        for member in [*self._strangers, *self._genuine]:
            member.wake()

    def expire(self) -> None:
        """End everybody."""
        for member in list(self._members):
            member.expire()


class Pace:
    """How long answers that end connections wait: not at all, unless they are many."""

    def __init__(self, a_second: float, at_once: int, longest: float) -> None:
        self._step = 1 / a_second
        self._slack = at_once / a_second
        self._longest = longest
        self._next = 0.0

    def delay(self, now: float) -> float:
        """Return how many seconds the next one waits."""
        self._next = min(max(self._next, now - self._slack) + self._step, now + self._longest)
        return max(0.0, self._next - now)


class Graves:
    """Sockets that nobody uses any more, and that are closed later."""

    def __init__(self, size: int, seconds: float) -> None:
        self._size = size
        self._seconds = seconds
        self._sockets: deque[tuple[float, Any]] = deque()

    def bury(self, client: Any) -> None:  # noqa: ANN401  a socket
        """Close a socket later."""
        self._sockets.append((monotonic() + self._seconds, client))
        self.look(monotonic())

    def look(self, now: float) -> None:
        """Close what has waited for long enough, and the oldest where there are too many."""
        while self._sockets and (self._sockets[0][0] < now or len(self._sockets) > self._size):
            self._sockets.popleft()[1].close()

    def empty(self) -> None:
        """Close all."""
        self.look(float("inf"))
