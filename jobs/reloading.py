"""The worker of `hookonce dev`: SIGHUP has it load configuration, providers and handlers anew, in milliseconds.

One process has imported everything but what is the user's, and forks a worker and a sweep off itself. At SIGHUP they
end as at SIGTERM, the worker after the attempt that is under way, and others are forked. One that can't work says why
and waits for the next SIGHUP.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.children import begin, handlers_here, keep_lines, sweep_forever, work_alone
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.processes.supervisor import Child, Supervisor


def supervise(place: Path | None) -> int:
    """Run worker and sweep until stopped; return the exit code. `place`: where the worker writes what it holds."""
    on_end = LastClaims(place).ended if place else None
    children = [
        Child("worker", run=partial(_begin, partial(_work, place)), on_end=on_end),
        Child("sweep", run=partial(_begin, sweep_forever, calls_senders=True)),
    ]
    return Supervisor(children, patient=True, restarts_on_hangup=True).run()


def _begin(act: Callable[[Settings], object], *, calls_senders: bool = False) -> None:
    """Read everything anew, and act.

    No bytecode of the user's modules is kept: Python takes it for a file of the same size and the same second, so one
    that is saved twice in a second would be run as it was first.
    """
    sys.dont_write_bytecode = True
    begin(act, calls_senders=calls_senders)


def _work(place: Path | None, settings: Settings) -> None:
    keep_lines(settings)
    work_alone(SingleSlot(settings, handlers_here(settings)), settings, place)
