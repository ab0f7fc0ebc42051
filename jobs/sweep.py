"""Finds what was forgotten: lost rings, leases that ran out, retries that fell due. Safe in many processes at once."""

import logging
import random
from datetime import timedelta

import psycopg
import redis

from jobs.chores import Chores
from jobs.drain import stopping
from receiver import database
from receiver.failpoints import reach
from receiver.handoff import Bell
from receiver.ledger import upkeep
from receiver.settings import Settings
from receiver.window import connect

log = logging.getLogger(__name__)

INTERVAL = timedelta(seconds=2)


class Sweep:
    """Rings for what is due, and keeps the tables in shape."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.database_url
        self._client = connect(settings.redis_url)
        self._bell = Bell(self._client)
        self._connection: psycopg.Connection | None = None
        self._chores = Chores(settings, self._client)

    def once(self) -> int:
        """Ring if anything is due; give the number of due events seen (1 at most: more is not counted).

        Raises nothing: what could not be done now is done at the next turn.
        """
        try:
            if self._connection is None or self._connection.closed:
                self._connection = database.connect(self._url)
            due = upkeep.is_anything_due(self._connection)
            if due:
                reach("sweep.found")
                self._ring()
                reach("sweep.rung")
            self._chores.turn(self._connection)
        except (psycopg.Error, database.LedgerUnavailable) as error:
            log.warning("sweep: the ledger is away: %s", type(error).__name__)
            if self._connection is not None:
                self._connection.close()
            return 0
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
