"""What a sweep does besides ringing: each chore a little at a time, and no failure of one keeps the others waiting.

A new chore is one more line in `Chores.__init__`: what to say when it fails, and a function of the connection that
is safe in many processes at once and takes a fraction of a second.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

import psycopg
import redis

from jobs.pruner import Pruner
from jobs.watch import Watch
from receiver.ledger import activity, counts, desk_follow, desk_steps, quarantine, upkeep
from receiver.settings import Settings

log = logging.getLogger(__name__)

UPKEEP_INTERVAL = timedelta(minutes=10)
COUNT_INTERVAL = timedelta(seconds=10)

Chore = Callable[[psycopg.Connection], object]


class Chores:
    """The chores of one sweep, in order; `client` is the Redis that it watches."""

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._mark: counts.Mark | None = None
        self._quarantines = {s.name: s.quarantine for s in settings.sources.values() if s.quarantine}
        self._chores: tuple[tuple[str, Chore], ...] = (
            ("no partitions for the coming days", _seldom(_partition)),  # no right to make tables, say
            ("nothing has left the quarantine", _seldom(self._expire)),
            ("bulk replays must wait", desk_steps.advance),
            ("bulk replays are not looked after", desk_follow.look),
            ("activity was not counted", activity.fill),
            ("trouble was not looked for", Watch(settings, client).look),
            ("events were not counted", self._count),
            ("nothing more was pruned", Pruner(settings).turn),
        )

    def turn(self, connection: psycopg.Connection) -> None:
        """Do a little of each. Raises: psycopg.Error once the connection is lost, or has led to a standby."""
        for trouble, chore in self._chores:
            try:
                chore(connection)
            except psycopg.Error as error:
                if connection.closed or isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                    raise
                log.warning("sweep: %s: %s", trouble, type(error).__name__)

    def _expire(self, connection: psycopg.Connection) -> None:
        quarantine.expire(connection, self._quarantines)

    def _count(self, connection: psycopg.Connection) -> None:
        if self._mark is None:
            self._mark = counts.mark(connection)
        elif time.monotonic() - self._mark.at > COUNT_INTERVAL.total_seconds():
            self._mark = counts.advance(connection, self._mark)


def _partition(connection: psycopg.Connection) -> None:
    for name in upkeep.create_partitions(connection):
        log.info("made partition %s", name)


def _seldom(chore: Chore) -> Chore:
    """Have a chore done once in `UPKEEP_INTERVAL`, however often it is called."""
    rests_until = 0.0

    def turn(connection: psycopg.Connection) -> None:
        nonlocal rests_until
        now = time.monotonic()
        if now >= rests_until:
            rests_until = now + UPKEEP_INTERVAL.total_seconds()
            chore(connection)

    return turn
