"""Finds what was forgotten: lost notifications, expired leases, retries that fell due. Safe in many processes."""

import logging
import random
import threading
from datetime import timedelta

import psycopg

from hookonce.jobs.maintenance.tasks import MaintenanceTasks
from hookonce.jobs.stopping import stopping
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.failpoints import reach
from hookonce.receiver.intake.sender_api.rounds import Rounds
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import due_rows
from hookonce.receiver.ledger.runs.due_cursor import SweepMark
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue

log = logging.getLogger(__name__)

SWEEP_INTERVAL = timedelta(seconds=2)


class Sweep:
    """Notifies workers of what is due, and keeps the tables in shape."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._url = settings.database_url
        self._client = connect(settings.redis_url)
        self._work_queue = WorkQueue(self._client)
        self._connection: psycopg.Connection | None = None
        self._mark = SweepMark()
        self._tasks = MaintenanceTasks(settings, self._client)

    def once(self) -> int:
        """Notify if anything is due; return the number of due events seen (1 at most: more is not counted).

        Raises nothing: what could not be done now is done at the next turn.
        """
        try:
            if self._connection is None or self._connection.closed:
                self._connection = connections.connect(self._url)
            due = due_rows.is_anything_due(self._connection, self._mark)
            if due:
                reach("sweep.found")
                self._notify()
                reach("sweep.rung")
            self._tasks.turn(self._connection)
        except (psycopg.Error, connections.LedgerUnavailable) as error:
            log.warning("sweep: the ledger is away: %s", type(error).__name__)
            if self._connection is not None:
                self._connection.close()
            return 0
        return int(due)

    def forever(self) -> None:
        """Sweep every `SWEEP_INTERVAL` until the process is asked to stop; the jitter keeps many sweeps apart.

        Senders are asked in a thread beside it, which ends with the process.
        """
        rounds = Rounds(self._settings)
        threading.Thread(target=rounds.forever, args=[stopping], daemon=True, name="hookonce-senders").start()
        while not stopping.is_set():
            self.once()
            stopping.wait(SWEEP_INTERVAL.total_seconds() * random.uniform(0.7, 1.3))  # noqa: S311  no secret

    def close(self) -> None:
        """Close both connections."""
        if self._connection is not None:
            self._connection.close()
        self._client.close()

    def _notify(self) -> None:
        try:
            self._work_queue.notify_if_idle()
        except RedisUnavailable as error:
            log.info("sweep: workers can't be notified, they poll: %s", error)
