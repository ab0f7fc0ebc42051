"""Who is connected, and who has to go: whose time is over, and near the limit the oldest without a request.

TLS handshakes have a limit of their own: whoever begins one too many ends the oldest of them.

One look at everybody twice a second takes the place of a timer for each wait; it happens however much is being sent.

A flood lives on what ends fast: a client that is hung up on is back at once. So who had to make room is hung up on only
after a while, its memory freed at once (`Graves`); and answers that end a connection are given at a certain pace.
"""

from collections import deque
from time import monotonic
from typing import Any, Protocol

from hookonce.receiver.web.http import limits


class Member(Protocol):
    """A connection, as far as the crowd knows it."""

    is_genuine: bool

    def is_late(self, now: float) -> bool:
        """Whether its time is over."""

    def expire(self) -> None:
        """Make it end, at once if it waits."""

    def evict(self) -> None:
        """The same, for it has to make room."""

    def wake(self) -> None:
        """Make it look whether it should end."""


class Crowd:
    """The connections of a process, `size` at most. `heads_size` is how many bytes of unfinished heads they hold."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.heads_size = 0
        self._members: set[Member] = set()
        self._strangers: dict[Member, None] = {}
        self._genuine: dict[Member, None] = {}
        self._handshakes: dict[Member, None] = {}

    def __len__(self) -> int:
        return len(self._members)

    def enter(self, member: Member) -> None:
        """Add a connection that has no request yet."""
        self._members.add(member)
        self._strangers[member] = None

    def leave(self, member: Member) -> None:
        """Forget a connection."""
        self._members.discard(member)
        self.has_shaken_hands(member)
        self.works(member)

    def shakes_hands(self, member: Member) -> None:
        """Note that it begins a TLS handshake; the one that began first goes if there are too many."""
        self._handshakes[member] = None
        if len(self._handshakes) > limits.HANDSHAKES:
            oldest = next(iter(self._handshakes))
            self.has_shaken_hands(oldest)
            self._strangers.pop(oldest, None)
            oldest.evict()

    def has_shaken_hands(self, member: Member) -> None:
        """Note that its handshake is over."""
        self._handshakes.pop(member, None)

    def rests(self, member: Member) -> None:
        """Note that it has no request any more."""
        (self._genuine if member.is_genuine else self._strangers)[member] = None

    def works(self, member: Member) -> None:
        """Note that it has a request: it may stay, however many come."""
        if self._strangers.pop(member, member) is not None:
            self._genuine.pop(member, None)

    def holds(self, more: int) -> None:
        """Note that so many bytes more of unfinished heads are kept; the longest-waiting go if that is too much."""
        self.heads_size += more
        if more > 0 and self.heads_size > limits.HEADS_SIZE:
            self.make_room()

    def make_room(self) -> bool:
        """End the one that has been without a request for longest, strangers first; False if all have one."""
        for waiting in (self._strangers, self._genuine):
            if waiting:
                member = next(iter(waiting))
                del waiting[member]
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
