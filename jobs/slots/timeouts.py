"""How long a process of many slots waits for what may yet end by itself, before it takes the next step."""

from dataclasses import dataclass
from datetime import timedelta

from hookonce.jobs.attempts.time_limit import GRACE_PERIOD


@dataclass(frozen=True)
class Timeouts:
    """The waits of one process; nothing else is different where they are shorter."""

    again: timedelta = timedelta(seconds=1)
    """How long a thread that goes on after its time limit goes on until it is told again."""
    grace: timedelta = GRACE_PERIOD
    """How long after the limit its socket is shut down; a step later, its slot is lost."""
    cancellation: timedelta = timedelta(seconds=2)
    """How long the cancellation of a statement may take."""
    stop: timedelta = timedelta(seconds=20)
    """How long runs under way may go on when the process is told to stop; then they are given back, not counted."""
    broken: timedelta = timedelta(seconds=5)
    """The same where too many slots are lost."""


USUAL = Timeouts()
