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


class Chores:
    """The chores of one sweep, in order; `client` is the Redis that it watches."""

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._tended_at: float | None = None
        self._mark: counts.Mark | None = None
        self._quarantines = {s.name: s.quarantine for s in settings.sources.values() if s.quarantine}
        self._chores: tuple[tuple[str, Callable[[psycopg.Connection], object]], ...] = (
            ("no partitions for the coming days", self._tend),  # no right to make tables, say
            ("bulk replays must wait", desk_steps.advance),
            ("bulk replays are not looked after", desk_follow.look),
            ("activity was not counted", activity.fill),
            ("trouble was not looked for", Watch(settings, client).look),
            ("events were not counted", self._count),
            ("nothing more was pruned", Pruner(settings).turn),
        )

    def turn(self, connection: psycopg.Connection) -> None:
        """Do a little of each. Raises: psycopg.Error once the connection is lost."""
        for trouble, chore in self._chores:
            try:
                chore(connection)
            except psycopg.Error as error:
                if connection.closed:
                    raise
                log.warning("sweep: %s: %s", trouble, type(error).__name__)

    def _tend(self, connection: psycopg.Connection) -> None:
        now = time.monotonic()
        if self._tended_at is not None and now - self._tended_at < UPKEEP_INTERVAL.total_seconds():
            return
        self._tended_at = now
        for name in upkeep.create_partitions(connection):
            log.info("made partition %s", name)
        quarantine.expire(connection, self._quarantines)

    def _count(self, connection: psycopg.Connection) -> None:
        if self._mark is None:
            self._mark = counts.mark(connection)
        elif time.monotonic() - self._mark.at > COUNT_INTERVAL.total_seconds():
            self._mark = counts.advance(connection, self._mark)
