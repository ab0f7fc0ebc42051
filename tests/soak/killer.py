"""Kills workers in the midst of an attempt, and receivers whatever they do; nobody but the stack's own processes."""

import contextlib
import itertools
import os
import signal
import threading
import time

import psycopg

from tests.support.stories.hurrying import held_by

HOLDS = """
SELECT 1 FROM unnest(%(events)s::bigint[], %(attempts)s::int[]) AS held (event, attempt)
JOIN hookonce.queue q USING (event) JOIN hookonce.claims c USING (token)
WHERE q.attempts + 1 = held.attempt AND c.lease_until > now()
LIMIT 1
"""
RECEIVERS = 0.25
"""The share of receivers among the killed."""
PAUSE = (0.8, 2.0)
"""Seconds between two kills."""


class Killer:
    """Kills in a thread of its own from `start` to `stop`; counts, and knows when whom it killed held work."""

    def __init__(self, stack, random):
        self._stack = stack
        self._random = random
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._kill_on)
        self.workers = 0
        self.receivers = 0
        self.holding = []
        self.seconds = 0.0
        self._ledger = None

    def start(self):
        self._began = time.monotonic()
        self._thread.start()

    def stop(self):
        self._enough.set()
        self._thread.join()
        if self._ledger is not None:
            self._ledger.close()
        self.seconds = time.monotonic() - self._began

    @property
    def longest_pause(self):
        """Seconds between two kills of a process that held work, at most."""
        times = [self._began, *self.holding, self._began + self.seconds]
        return max(after - before for before, after in itertools.pairwise(times))

    def _kill_on(self):
        while not self._enough.wait(self._random.uniform(*PAUSE)):
            if self._random.random() < RECEIVERS:
                self._kill_receiver()
            else:
                self._kill_worker()

    def _kill_receiver(self):
        pids = self._stack.receivers
        if len(pids) > 1:  # the other one goes on
            with contextlib.suppress(ProcessLookupError), process(self._random.choice(pids)) as handle:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                self.receivers += 1

    def _kill_worker(self):
        """Freeze one worker after the other until one holds work: the ledger says so, and nothing can change it."""
        while not self._enough.wait(0.005):
            for pid in self._random.sample(pids := self._stack.workers, len(pids)):
                with contextlib.suppress(ProcessLookupError), process(pid) as handle:
                    signal.pidfd_send_signal(handle, signal.SIGSTOP)
                    if self._holds_work(pid):
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                        self.workers += 1
                        self.holding.append(time.monotonic())
                        return
                    signal.pidfd_send_signal(handle, signal.SIGCONT)

    def _holds_work(self, pid):
        with contextlib.suppress(OSError, ValueError, psycopg.OperationalError):
            events, attempts = map(list, zip(*held_by(self._stack.directory, pid), strict=True))
            return bool(self._asked(HOLDS, {"events": events, "attempts": attempts}))
        return False

    def _asked(self, query, values):
        """Ask the ledger over a connection that is kept as long as it lasts."""
        if self._ledger is None or self._ledger.closed:
            self._ledger = psycopg.connect(self._stack.database_url, autocommit=True)
        return self._ledger.execute(query, values).fetchall()


@contextlib.contextmanager
def process(pid):
    """A handle on a process, so that no other one of the same number is ever meant. Raises ProcessLookupError."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)
