"""Runs that one handler takes together: claimed, ended and let go of as one, each of them a run of its own.

A claim with a handler is a batch under way. One that fails or is lost costs none of its runs an attempt: each half of
it is written down, to be tried by itself. So who fails is found in as many steps as the size can be halved, whatever
dies meanwhile, and stands alone when it is counted. Such parts are `receiver.ledger.runs.batch_parts`.

Lock order: a row of `claims`, then rows of the queue.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import batch_parts, failed_attempts, marks
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.runs.marks import Marked
from hookonce.receiver.ledger.states import RunStatus


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """Runs under one claim, in the order in which they became due; `is_full`: there may be more of them."""

    handler: str
    token: uuid.UUID
    runs: Sequence[ClaimedRun]
    is_full: bool = False

    @property
    def events(self) -> list[int]:
        """The events, in the order of their ids."""
        return sorted(run.event.id for run in self.runs)


_TAKE_BACK = "DELETE FROM hookonce.claims WHERE token = %s RETURNING token"


class Apart(Enum):
    """What came of a batch that was to be let go of: another has it, it was, or its handler had committed it."""

    LOST = auto()
    DONE = auto()
    COMMITTED = auto()


def take_apart(  # noqa: PLR0913  by keyword
    connection: psycopg.Connection,
    batch: ClaimedBatch,
    parts: Sequence[Sequence[int]],
    *,
    verdicts: Mapping[int, AttemptResult] | None = None,
    delay: timedelta = timedelta(0),
    error: str | None = None,
    committed: AttemptResult | None = None,
    logged: Callable[[Sequence[AttemptResult]], Sequence[AttemptResult]] = list,
) -> Apart:
    """Let go of a batch that did not succeed, and commit; return what came of it. The connection is idle.

    `parts`: which of its events are to be tried by themselves; two of them are a halving. `verdicts`: how those ended
    that are known. All others are due after `delay`, and charged with nothing. With `committed` it is asked whether the
    handler has committed by itself: then this is how all of them end. `logged` adds what the handler wrote to the ends
    of its runs, in their order.
    """
    found: list[object] = []
    marked = Marked.of(batch.runs)

    def take_back() -> None:
        found[:] = [connection.execute(_TAKE_BACK, [batch.token]).fetchone()]

    def write(has_committed: bool) -> Apart:  # noqa: FBT001
        if found == [None]:
            return Apart.LOST
        if has_committed and committed is not None:
            connection.execute(*marks.deletion(marked))
            failed_attempts.fail(connection, batch.runs, logged([committed] * len(batch.runs)))
        else:
            known, rest = verdicts or {}, AttemptResult(RunStatus.WAITING, delay=delay, counted=False)
            ended = logged([known.get(run.event.id, rest) for run in batch.runs])
            if not failed_attempts.fail(connection, batch.runs, ended):
                return Apart.LOST  # they have ended, and what failed came after that
            batch_parts.write(connection, batch.handler, parts, error)
        reach("batch.apart")
        return Apart.COMMITTED if has_committed else Apart.DONE

    if committed is not None:
        return marks.settle(connection, marked, write, first=take_back)
    with connection.transaction():
        take_back()
        return write(False)  # noqa: FBT003  the same function for both
