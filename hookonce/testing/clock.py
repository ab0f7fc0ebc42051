"""The time of an inbox under test: it goes on by itself, and further when a test says so."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hookonce.receiver.ledger.database import connections

_SHIFT = (
    "UPDATE hookonce.queue SET due_at = due_at - %(by)s, slot_at = slot_at - %(by)s",
    "UPDATE hookonce.claims SET lease_until = lease_until - %(by)s",
    "UPDATE hookonce.limits SET head = head - %(by)s",
    "UPDATE hookonce.waits SET since = since - %(by)s, until = until - %(by)s WHERE ended_at IS NULL",
    "UPDATE hookonce.breakers SET try_at = try_at - %(by)s, opened_at = opened_at - %(by)s",
)

__tracebackhide__ = True  # a test that fails shows the user's lines


class Clock:
    """The time where events come from, and for how long runs still wait.

    Pauses, leases, rates and a breaker's trials are PostgreSQL's to measure. So time goes on there by moving what waits
    nearer.
    """

    def __init__(self, database_url: str, moved: Callable[[], None]) -> None:
        """Be the clock of a ledger; `moved` is called when time has been let pass."""
        self._database_url = database_url
        self._moved = moved
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return datetime.now(UTC) + self._ahead

    def advance(self, by: timedelta | float) -> None:
        """Let time pass, a timedelta or seconds: retries become due, leases run out, signatures grow old.

        Rates have room again, and an open breaker tries its handler once more when its pause is over.
        """
        span = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if span < timedelta():
            raise ValueError(f"{span} would go back; time can only pass")
        self._ahead += span
        with connections.connect(self._database_url) as connection, connection.transaction():
            for statement in _SHIFT:
                connection.execute(statement, {"by": span})
        self._moved()
