"""Runs that one handler takes together: claimed, ended and let go of as one, each of them a run of its own.

A run of a batch has the word `batch` in the queue until its batch has ended. A claim with a handler is a batch under
way. One that fails or is lost costs none of its runs an attempt: the runs of each half have the word of their part
then, and are tried by themselves, the smallest part first. So the run that fails is found in as many steps as the size
can be halved, whatever dies meanwhile, and stands alone when it is counted. A part is a hint: a run that loses it goes
back to all others.

Lock order: a row of `claims`, then rows of the queue.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import failed_attempts
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus, Waits
from hookonce.receiver.ledger.stats import counters


def events(runs: Sequence[ClaimedRun]) -> list[int]:
    """Return the events of a batch, in the order of their ids."""
    return sorted(run.event.id for run in runs)


def halves(events: Sequence[int]) -> list[Sequence[int]]:
    """Return both halves of what failed together."""
    middle = (len(events) + 1) // 2
    return [events[:middle], events[middle:]]


def words(parts: Sequence[Sequence[int]]) -> dict[int, str]:
    """Return the word in the queue of each event of these parts."""
    return {event: f"{Waits.BATCH}:{len(part):04}:{part[0]:019}" for part in parts for event in part}


_TAKE_BACK = "DELETE FROM hookonce.claims WHERE token = %s RETURNING token"


def take_apart(  # noqa: PLR0913  by keyword
    connection: psycopg.Connection,
    runs: Sequence[ClaimedRun],
    parts: Sequence[Sequence[int]],
    *,
    verdicts: Mapping[int, AttemptResult] | None = None,
    delay: timedelta = timedelta(0),
    error: str | None = None,
    logged: Callable[[Sequence[AttemptResult]], Sequence[AttemptResult]] = list,
) -> bool:
    """Let go of a batch that did not succeed, and commit; return whether it was ours. The connection is idle.

    `parts`: which of its events are to be tried by themselves; two of them are a halving. `verdicts`: how those ended
    that are known. All others are due after `delay`, and charged with nothing. `logged` adds what the handler wrote to
    the ends of its runs, in their order.
    """
    known, waits = verdicts or {}, words(parts)
    rest = AttemptResult(RunStatus.WAITING, delay=delay, counted=False)
    with connection.transaction():
        if connection.execute(_TAKE_BACK, [runs[0].token]).fetchone() is None:
            return False
        ended = [known.get(run.event.id) or replace(rest, waits=waits.get(run.event.id)) for run in runs]
        if not failed_attempts.fail(connection, runs, logged(ended)):
            return False  # they have ended, and what failed came after that
        if len(parts) > 1:
            counters.count_halving(connection, runs[0].handler, error)
        reach("batch.apart")
        return True
