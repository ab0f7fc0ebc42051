"""Named places where a test may stop the process dead, one per step of a delivery's life.

Off unless HOOKONCE_FAILPOINT is set when the process starts, or `arm` is called: then every place reached is
appended to the file HOOKONCE_FAILPOINT_LOG, and the k-th (`HOOKONCE_FAILPOINT=k`, counted over the process)
ends the process as SIGKILL would. With k = 0 the places are only written down.
"""

import os
import signal
import threading

POINTS = (
    "delivery.read",
    "delivery.verified",
    "delivery.parsed",
    "window.claimed",
    "ledger.inserted",
    "conflict.recorded",
    "ledger.committed",
    "window.settled",
    "bell.rung",
    "delivery.answered",
    "tally.written",
    "job.begun",
    "claim.taken_over",
    "run.leased",
    "run.claimed",
    "handler.entered",
    "handler.returned",
    "run.ended",
    "run.committed",
    "failure.rolled_back",
    "failure.ended",
    "failure.committed",
    "batch.leased",
    "batch.ended",
    "batch.apart",
    "run.released",
    "drain.rung",
    "job.ended",
    "sweep.found",
    "sweep.rung",
)
"""Every place, in the order in which a delivery and its runs reach them.

`ledger.inserted` is inside the transaction of an insert that holds a lock (other inserts are one statement),
`claim.taken_over`, `run.leased`, `run.ended`, `failure.ended` and those of a `batch` are inside theirs; what is
`committed` or `claimed` is durable.
"""
OF_OPERATIONS = (
    "operation.asked",
    "operation.claimed",
    "operation.done",
    "operation.completed",
    "operation.answered",
)
"""Every place of an operation under an idempotency key; what is `claimed` or `completed` is in its store."""
OF_LONG_RUNS = ("long.written", "long.committed")
"""Every place of a transaction that a long run opens: in it, and when it is durable."""
OF_CONSUMERS = ("messages.committed",)
"""The place between the COMMIT of a batch of messages and their acknowledgement."""
OF_WAITS = ("wait.declared", "wait.noted", "wait.told")
"""Every place of a wait for another event: in the transaction of a side, and when an arrival's is committed."""
_PLACES = (*POINTS, *OF_OPERATIONS, *OF_LONG_RUNS, *OF_CONSUMERS, *OF_WAITS)


class _Counter:
    """Counts the places reached, those of one name if it is given, writes them down and ends the process at one."""

    def __init__(self, fatal: int, log: str, only: str | None = None) -> None:
        self._fatal = fatal
        self._log = log
        self._only = only
        self._lock = threading.Lock()
        self._reached = 0

    def __call__(self, name: str) -> None:
        if name not in _PLACES:
            raise LookupError(f"no failpoint is called '{name}'; add it to POINTS or OF_OPERATIONS")
        with self._lock:
            self._reached += self._only in {None, name}
            with open(self._log, "a", encoding="ascii") as log:  # noqa: PTH123  one append, as cheap as can be
                log.write(f"{name}\n")
            if self._reached == self._fatal and self._only in {None, name}:
                os.kill(os.getpid(), signal.SIGKILL)


counter: _Counter | None = None


def arm(fatal: int, log: str) -> None:
    """Count from here on: die at place number `fatal` (0: never), write every place reached to the file `log`.

    For tests that fork their processes; others set the environment.
    """
    global counter  # noqa: PLW0603  the process has one count
    counter = _Counter(fatal, log)


def arm_at(name: str, log: str, nth: int = 1) -> None:
    """Die when this place is reached for the n-th time; as `arm` otherwise. Raises: LookupError for no such place."""
    if name not in _PLACES:
        raise LookupError(f"no failpoint is called '{name}'; there are {', '.join(_PLACES)}")
    global counter  # noqa: PLW0603  the process has one count
    counter = _Counter(nth, log, name)


def reach(name: str) -> None:
    """Note that the process is at this place; outside tests nothing happens."""
    if counter is not None:
        counter(name)


if "HOOKONCE_FAILPOINT" in os.environ:
    arm(int(os.environ["HOOKONCE_FAILPOINT"]), os.environ["HOOKONCE_FAILPOINT_LOG"])
