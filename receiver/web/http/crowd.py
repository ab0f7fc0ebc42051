"""Who is connected, and who has to go: whose time is over, and near the limit the oldest without a request.

One look at everybody twice a second takes the place of a timer for each wait; it happens however much is being sent.
"""

from typing import Protocol

from hookonce.receiver.web.http import limits


class Member(Protocol):
    """A connection, as far as the crowd knows it."""

    is_genuine: bool

    def is_late(self, now: float) -> bool:
        """Whether its time is over."""

    def expire(self) -> None:
        """Make it end, at once if it waits."""

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

    def __len__(self) -> int:
        return len(self._members)

    def enter(self, member: Member) -> None:
        """Add a connection that has no request yet."""
        self._members.add(member)
        self._strangers[member] = None

    def leave(self, member: Member) -> None:
        """Forget a connection."""
        self._members.discard(member)
        self.works(member)

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
                member.expire()
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
