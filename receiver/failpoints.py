"""Named places where a test may stop the process dead, one per step of a delivery's life.

Off unless HOOKONCE_FAILPOINT is set when the process starts: then the k-th place reached (counted over the
process, `HOOKONCE_FAILPOINT=k`) ends the process as SIGKILL would, after its name was appended to the file
HOOKONCE_FAILPOINT_LOG. With k = 0 the places are only written down.
"""

import os
import signal
from collections.abc import Callable

POINTS = (
    "delivery.read",
    "delivery.verified",
    "delivery.parsed",
    "window.claimed",
    "ledger.committed",
    "window.settled",
    "bell.rung",
    "delivery.answered",
    "job.begun",
    "run.claimed",
    "handler.entered",
    "handler.returned",
    "run.ended",
    "run.committed",
    "failure.rolled_back",
    "failure.committed",
    "sweep.found",
    "sweep.rung",
)
"""Every place, in the order of DESIGN's life of a delivery."""


def _nothing(_name: str) -> None:
    """Pass: what `reach` is outside tests."""


class _Counter:
    """Counts the places reached and ends the process at one of them."""

    def __init__(self, fatal: int, log: str) -> None:
        self._fatal = fatal
        self._log = log
        self._reached = 0

    def __call__(self, name: str) -> None:
        if name not in POINTS:
            raise LookupError(f"no failpoint is called '{name}'; add it to POINTS")
        self._reached += 1
        if self._fatal and self._reached != self._fatal:
            return
        with open(self._log, "a", encoding="ascii") as log:  # noqa: PTH123  one append, as cheap as can be
            log.write(f"{name}\n")
        if self._reached == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def _from_environment() -> Callable[[str], None]:
    fatal = os.environ.get("HOOKONCE_FAILPOINT")
    if fatal is None:
        return _nothing
    return _Counter(int(fatal), os.environ["HOOKONCE_FAILPOINT_LOG"])


reach: Callable[[str], None] = _from_environment()
