"""Calls the callbacks of `on_failure` for runs that were ended for a lost slot, in a thread of its own.

The thread that ended them claims for all slots, or ends the process, and waits for nobody's callback.
"""

import logging
import queue
import threading

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt

log = logging.getLogger(__name__)


class FailureCalls:
    """One thread, begun with the first failure. One that nothing ends keeps those behind it waiting, and no others."""

    def __init__(self, executor: Executor) -> None:
        """Call under the time limit of `executor`, whose connection is not used."""
        self.executor = executor
        self._queue: queue.Queue[FailedAttempt] = queue.Queue()
        self._thread: threading.Thread | None = None

    def put(self, failure: FailedAttempt) -> None:
        """Have the callbacks told of a failure; return at once."""
        self._queue.put(failure)
        if self._thread is None:
            self._thread = threading.Thread(target=self._call_on, name="callbacks", daemon=True)
            self._thread.start()

    def wait(self, timeout: float) -> None:
        """Wait until they have been told of all, for so many seconds at most."""
        with self._queue.all_tasks_done:
            self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, timeout)

    def _call_on(self) -> None:
        while True:
            failure = self._queue.get()
            try:
                with self.executor.alarm:
                    self.executor.call_back(failure)
            except BaseException:
                log.exception("callbacks were not told of a failure")
            finally:
                self._queue.task_done()
