"""Finds what was forgotten: lost rings, leases that ran out, retries that fell due. Safe in many processes at once."""

import logging
import random
import time
from datetime import timedelta

import psycopg
import redis

from jobs.drain import stopping
from receiver import database
from receiver.failpoints import reach
from receiver.handoff import Bell
from receiver.ledger import activity, counts, desk_follow, desk_steps, upkeep
from receiver.settings import Settings
from receiver.window import connect

log = logging.getLogger(__name__)

INTERVAL = timedelta(seconds=2)
UPKEEP_INTERVAL = timedelta(minutes=10)
COUNT_INTERVAL = timedelta(seconds=10)


class Sweep:
    """Rings for what is due, and keeps the tables in shape."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.database_url
        self._client = connect(settings.redis_url)
        self._bell = Bell(self._client)
        self._connection: psycopg.Connection | None = None
        self._tended_at: float | None = None
        self._mark: counts.Mark | None = None

    def once(self) -> int:
        """Ring if anything is due; give the number of due events seen (1 at most: more is not counted).

        Raises nothing: what could not be done now is done at the next turn.
        """
        try:
            if self._connection is None or self._connection.closed:
                self._connection = database.connect(self._url)
            self._tend(self._connection)
            _replay(self._connection)
            due = upkeep.is_anything_due(self._connection)
            self._count(self._connection)
        except (psycopg.Error, database.LedgerUnavailable) as error:
            log.warning("sweep: the ledger is away: %s", type(error).__name__)
            if self._connection is not None:
                self._connection.close()
            return 0
        if due:
            reach("sweep.found")
            self._ring()
            reach("sweep.rung")
        return int(due)

    def forever(self) -> None:
        """Sweep every `INTERVAL` until the process is asked to stop; the jitter keeps many sweeps apart."""
        while not stopping.is_set():
            self.once()
            stopping.wait(INTERVAL.total_seconds() * random.uniform(0.7, 1.3))  # noqa: S311  no secret

    def close(self) -> None:
        """Close both connections."""
        if self._connection is not None:
            self._connection.close()
        self._client.close()

    def _ring(self) -> None:
        try:
            self._bell.ring_if_quiet()
        except (redis.RedisError, OSError) as error:
            log.info("sweep: the bell can't be rung, workers poll: %s", type(error).__name__)

    def _count(self, connection: psycopg.Connection) -> None:
        """Count the minutes that are over, and new events; a failure must not keep the bell from ringing."""
        try:
            activity.fill(connection)
            if self._mark is None:
                self._mark = counts.mark(connection)
            elif time.monotonic() - self._mark.at > COUNT_INTERVAL.total_seconds():
                self._mark = counts.advance(connection, self._mark)
        except psycopg.Error as error:
            log.warning("sweep: activity was not counted: %s", type(error).__name__)

    def _tend(self, connection: psycopg.Connection) -> None:
        now = time.monotonic()
        if self._tended_at is not None and now - self._tended_at < UPKEEP_INTERVAL.total_seconds():
            return
        self._tended_at = now
        try:
            for name in upkeep.create_partitions(connection):
                log.info("made partition %s", name)
        except psycopg.Error as error:  # no right to, say; whatever is due must hear the bell all the same
            log.warning("sweep: no partitions for the coming days: %s", type(error).__name__)


def _replay(connection: psycopg.Connection) -> None:
    """Take the next steps of bulk replays; what could not be done now, a lock held for long, is done next time."""
    try:
        desk_steps.advance(connection)
        desk_follow.look(connection)
    except psycopg.Error as error:
        if connection.closed:
            raise
        log.warning("sweep: bulk replays must wait: %s", type(error).__name__)
