"""A batch inside one transaction, and how it ended.

What the handler writes and the end of all its runs commit together, or nothing does. What fails is taken apart: nobody
is charged, and each half is tried by itself (`receiver.ledger.runs.batches`). What is alone is an attempt like any
(`jobs.attempts.attempt`), so only that can use attempts up.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import psycopg

from hookonce.jobs.attempts import endings, failure_callbacks
from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.batch_results import results_of
from hookonce.jobs.attempts.failure_callbacks import failure_of
from hookonce.jobs.attempts.time_limit import TimeUp
from hookonce.jobs.attempts.transaction_guard import RolledBack
from hookonce.jobs.error_summary import whereabouts
from hookonce.jobs.event import BodyDropped, ReceivedEvent
from hookonce.jobs.handlers import GiveUp, Handler, RetryLater
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import batch_parts, batches, ends
from hookonce.receiver.ledger.runs.batches import Apart, ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Also, AttemptResult, LeaseLost
from hookonce.receiver.ledger.runs.marks import Kept
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import batch_figures

log = logging.getLogger(__name__)

CUT_OFF = "the ledger went away in the middle of a batch"

_NOW = timedelta(0)


class _Unreadable(Exception):  # noqa: N818  what was found
    """Some events of a batch have no body that can be read; by the event's id, why."""

    def __init__(self, errors: Mapping[int, BodyDropped | CannotDecrypt]) -> None:
        super().__init__()
        self.errors = errors


class _Outcome(NamedTuple):
    """What is to become of a batch that did not succeed; see `batches.take_apart`."""

    parts: Sequence[Sequence[int]] = ()
    verdicts: Mapping[int, tuple[AttemptResult, BaseException]] = {}
    delay: timedelta = _NOW
    error: str | None = None


class BatchExecutor(Executor):
    """Runs what was claimed, batches too."""

    def __init__(self, *of_executor: Any, **named: Any) -> None:  # noqa: ANN401  what `Executor` takes
        super().__init__(*of_executor, **named)
        self._warned: set[str] = set()  # handlers whose lists have another length than their batches

    def attempt_batch(self, batch: ClaimedBatch, handler: Handler) -> None:
        """Have a handler take a batch, and end it.

        Raises `psycopg.Error` or `SQLAlchemyError` when the database is gone; then nothing was written, or all of it,
        and the batch is to be given back (`give_back_batch_cut_off`) before another is begun.
        """
        self._began = time.monotonic()
        with self.listener.attempting_batch(batch.runs):
            self._make_batch(batch, handler)
        self.claims.settled(batch.runs)

    def _make_batch(self, batch: ClaimedBatch, handler: Handler) -> None:
        try:
            self._attempt_batch(batch, handler)
        except LeaseLost as lost:
            self._reset()
            if not batches.is_ours(self._begun(), batch):
                self._refused_batch(batch, lost)
                return
            error: BaseException = RolledBack(self.rolled_back)
        except TimeUp as late:
            self.alarm.unset()
            late.args = self.alarm.time_up().args  # raised from outside it has none
            self.discard()  # the alarm may have cut a call into libpq
            error = late
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # noqa: BLE001  whatever it raises is a failed attempt
            self._reset()
            error = raised
        else:
            return
        self._take_apart(batch, handler, error)

    def end_for_lost(self, run: ClaimedRun | ClaimedBatch, handler: Handler, error: BaseException) -> None:
        """End what is under way in another thread and was not ended by its time limit; a batch is halved."""
        if isinstance(run, ClaimedRun):
            super().end_for_lost(run, handler, error)
            return
        self._is_marked = True  # by what that thread is doing now, maybe
        self._take_apart(run, handler, error)

    def hand_back_batch(self, batch: ClaimedBatch) -> None:
        """Give up, on our connection, a batch that is under way in another thread: due at once, charged with nothing.

        Raises what `attempt_batch` raises.
        """
        batches.take_apart(self.idle_ledger, batch, (), committed=_committed(None))

    def give_back_batch_cut_off(self, batch: ClaimedBatch) -> None:
        """Give back the batch that was under way when the ledger went away, unless it was ended: uncharged, in halves.

        Raises what `attempt_batch` raises.
        """
        parts = batch_parts.halves(batch.events)
        try:
            batches.take_apart(self.idle_ledger, batch, parts, error=CUT_OFF, committed=_committed(None))
        except Kept:
            self.leave(batch.runs)
        self.claims.settled(batch.runs)

    def _attempt_batch(self, batch: ClaimedBatch, handler: Handler) -> None:
        self._start_anew()
        self._begin(handler)
        events = self._events(batch, handler)
        returned = self._called(
            handler, self._call_of(handler), events, partial(ends.mark_batch, runs=batch.runs)
        )
        self._warn_of_list(handler, returned, len(events))
        done = [
            self._sealed(run, AttemptResult(RunStatus.DONE, result))
            for run, result in zip(batch.runs, results_of(returned, len(events)), strict=True)
        ]
        transaction = self.begin()
        self._is_plain()
        also = self.failure_rows.after_success(batch.handler)
        ends.end_many(
            self.ledger,
            batch.runs,
            done,
            self._took(),
            also=also,
            xact_id=self._xact_id,
            asks_for_prepared=self.guard is not None and self.guard.may_have_prepared,
        )
        transaction.commit()
        reach("run.committed")
        self._clean()
        self._report_batch(batch, RunStatus.DONE, len(batch.runs))

    def _after_success(self, handler: Handler) -> Also | None:
        """Count a handler of batches that was given one event."""
        also = super()._after_success(handler)
        return partial(_count_alone, handler=handler.name, also=also) if handler.batch else also

    def _events(self, batch: ClaimedBatch, handler: Handler) -> list[ReceivedEvent]:
        """Make what the handler gets. Raises `_Unreadable`, which names all that have no body."""
        events, errors = [], {}
        for run in batch.runs:
            try:
                events.append(self._event(run, handler))
            except (BodyDropped, CannotDecrypt) as error:
                errors[run.event.id] = error
        if errors:
            raise _Unreadable(errors)
        return events

    def _take_apart(self, batch: ClaimedBatch, handler: Handler, error: BaseException) -> None:
        """Let go of a batch whose writes are rolled back; all of it is dead, should they be committed after all."""
        reach("failure.rolled_back")
        is_marked, self._is_marked, self._xact_id = self._is_marked, False, None
        self._reset()
        self.discard()  # what a rollback leaves in the session
        outcome = self._outcome(batch, handler, error)
        committed = _committed(endings.text(self._said(error)))
        try:
            found = batches.take_apart(
                self.idle_ledger,
                batch,
                outcome.parts,
                verdicts={event: ending for event, (ending, _) in outcome.verdicts.items()},
                delay=outcome.delay,
                error=outcome.error,
                committed=committed if is_marked else None,
            )
        except Kept:
            self.leave(batch.runs)
            return
        if found is Apart.LOST:
            self._refused_batch(batch, ends.lost_batch(batch.runs))
            return
        if found is Apart.COMMITTED:
            self.discard()  # whatever else it did there
            outcome = _Outcome(verdicts={run.event.id: (committed, error) for run in batch.runs})
        reach("failure.committed")
        for run in batch.runs:
            if run.event.id in outcome.verdicts:
                self._log_run(run, outcome.verdicts[run.event.id][0])
        left = len(batch.runs) - len(outcome.verdicts)
        status = RunStatus.WAITING if left else RunStatus.DEAD
        self._report_batch(batch, status, left, error if outcome.error else None)
        if failure_callbacks.callbacks:
            for run in batch.runs:
                ending, of_run = outcome.verdicts.get(run.event.id, (None, None))
                if ending is not None and of_run is not None and ending.error is not None:
                    self.tell_failure(failure_of(run, of_run, is_dead=ending.status == RunStatus.DEAD))

    def _outcome(self, batch: ClaimedBatch, handler: Handler, error: BaseException) -> _Outcome:
        """Say what is to become of a batch by what its handler raised: of some of its events, or of all alike."""
        errors: dict[int, GiveUp | RetryLater | BodyDropped | CannotDecrypt] = {}
        if isinstance(error, _Unreadable):
            errors |= error.errors
        elif isinstance(error, GiveUp | RetryLater):
            errors = dict.fromkeys(_named(error, batch), error)
        if errors:
            verdicts: dict[int, tuple[AttemptResult, BaseException]] = {}
            for run in batch.runs:
                if (of_run := errors.get(run.event.id)) is not None:
                    ending = endings.verdict(run, handler, of_run, self._said)
                    verdicts[run.event.id] = self._with_traceback(run, ending, of_run), of_run
            rest = [event for event in batch.events if event not in verdicts]
            return _Outcome(parts=[rest] if rest else [], verdicts=verdicts)
        if isinstance(error, RetryLater) and error.event is None:
            ending = endings.verdict(batch.runs[0], handler, error, self._said)
            if not ending.counted:
                return _Outcome(delay=ending.delay)
        return _Outcome(parts=batch_parts.halves(batch.events), error=endings.text(self._said(error)))

    def _report_batch(
        self, batch: ClaimedBatch, status: RunStatus, events: int, error: BaseException | None = None
    ) -> None:
        """Tell of the events of a batch that ended alike; of one that failed always: they have no failures of it."""
        self.listener.ended_batch(status, has_failed=error is not None)
        said: dict[str, object] = {"handler": batch.handler, "events": events, "status": status}
        if len(sources := _sources(batch)) == 1:
            said |= {"source": next(iter(sources))}
        if error is not None:
            log.warning("a batch failed, each half is tried by itself: %s", whereabouts(error), extra=said)
        elif events:
            log.info("batch", extra=said)

    def _refused_batch(self, batch: ClaimedBatch, lost: LeaseLost) -> None:
        """Say, and count, that a batch could not be ended; the line names the first of its events.

        What of it is still under our token comes back with the end of its lease.
        """
        self.claims.drop([batch.token])
        names = {**endings.names_of(batch.runs[0]), "events": len(batch.runs)}
        log.warning("lease lost: %s", lost, extra=names)
        self._count_refused(_sources(batch))

    def _warn_of_list(self, handler: Handler, returned: object, events: int) -> None:
        """Say once that a list has another length than the batch: each run would keep all of it."""
        if (
            isinstance(returned, list | tuple)
            and len(returned) != events
            and handler.name not in self._warned
        ):
            self._warned.add(handler.name)
            log.warning(
                "a list of %d was returned for %d events, and is kept with each of them: return one result per event, "
                "in their order, or None",
                len(returned),
                events,
                extra={"handler": handler.name},
            )


def _committed(error: str | None) -> AttemptResult:
    """Return how each run ends of a batch that its handler has committed by itself."""
    return AttemptResult(RunStatus.DEAD, error=endings.committed(error))


def _sources(batch: ClaimedBatch) -> AbstractSet[str]:
    return {run.event.source for run in batch.runs}


def _count_alone(connection: psycopg.Connection, handler: str, also: Also | None) -> None:
    # In the order of a batch's end: both lock the same rows.
    batch_figures.count_alone(connection, handler)
    if also is not None:
        also(connection)


def _named(error: GiveUp | RetryLater, batch: ClaimedBatch) -> list[int]:
    """Return the events of a batch that an error is about; none where it is about another, too."""
    about = [error.event] if isinstance(error.event, ReceivedEvent) else list(error.event or ())
    try:
        ids = {event.id for event in about}
    except AttributeError:  # it named something else
        return []
    return sorted(ids) if ids <= set(batch.events) else []
