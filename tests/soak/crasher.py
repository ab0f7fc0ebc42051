"""Crashes PostgreSQL and the pooler before it, again and again; and ends the sessions of many at once."""

import contextlib
import os
import signal
import threading
from collections import Counter

import psycopg

from hookonce.receiver.dev.embedded.postgres import IMMEDIATE

PAUSE = (4.0, 9.0)
"""Seconds between two crashes: recovery, and then some work."""
BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
TERMINATE = f"SELECT count(pg_terminate_backend(pid)) FROM ({BACKENDS}) AS others"  # noqa: S608  a constant


class Crasher:
    """Crashes in a thread of its own from `start` to `stop`; what it has started lives until `close`."""

    def __init__(self, postgres, pooler, random):
        self._postgres, self._pooler, self._random = postgres, pooler, random
        self._enough, self._has_stopped, self._is_closed = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._crash_on)
        self.failure = None
        self.done = Counter()

    def start(self):
        self._thread.start()

    def stop(self):
        self._enough.set()
        self._has_stopped.wait()

    def close(self):
        self._is_closed.set()
        self._thread.join()

    def _crash_on(self):
        ways = [self._kill_backend, self._terminate, self._restart] + [self._kill_pooler] * bool(self._pooler)
        try:
            while not self._enough.wait(self._random.uniform(*PAUSE)):
                way = self._random.choice(ways)
                with contextlib.suppress(psycopg.OperationalError):  # it has not come back from the last one
                    way()
                    self.done[way.__name__.lstrip("_")] += 1
        except BaseException as failure:  # noqa: BLE001  told with the outcome
            self.failure = failure
        self._has_stopped.set()
        self._is_closed.wait()  # a server ends with the thread that has started it

    def _kill_backend(self):
        with psycopg.connect(self._postgres.url, autocommit=True) as sql:
            pids = [pid for (pid,) in sql.execute(BACKENDS)]
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(pids), signal.SIGKILL)

    def _terminate(self):
        with psycopg.connect(self._postgres.url, autocommit=True) as sql:
            sql.execute(TERMINATE)

    def _restart(self):
        self._postgres.kill(IMMEDIATE)
        self._enough.wait(self._random.uniform(0, 2))
        self._postgres.restart()

    def _kill_pooler(self):
        self._pooler.kill()
        self._enough.wait(self._random.uniform(0, 1))
        self._pooler.start()
