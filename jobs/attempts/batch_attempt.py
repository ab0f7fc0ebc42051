"""One attempt of a batch: what its handler is given, and how it ends.

What the handler writes and the end of all its runs commit together, or nothing does. What fails is taken apart: nobody
is charged, and each half is tried by itself (`receiver.ledger.runs.batches`). What is alone is an attempt like any
(`jobs.attempts.attempt`), so only that can use attempts up.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg

from hookonce.jobs.attempts import endings, failure_callbacks
from hookonce.jobs.attempts.failure_callbacks import failure_of
from hookonce.jobs.attempts.listener import Listener
from hookonce.jobs.attempts.single import counting_batch, event_of, leave, log_end
from hookonce.jobs.attempts.transaction_guard import Marking
from hookonce.jobs.attempts.work import Blocks, Host, Marks, Transaction
from hookonce.jobs.event import BodyDropped, ReceivedEvent
from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.failures.issues import issue_of
from hookonce.jobs.handlers import GiveUp, Handler, RetryLater
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import batch_parts, batches, ends
from hookonce.receiver.ledger.runs.batches import Apart, ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult, EndedBatch, LeaseLost
from hookonce.receiver.ledger.runs.marks import Kept
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.monitoring.log_capture import Lines

log = logging.getLogger("hookonce.jobs.batches.batch_attempt")  # as filters know it

CUT_OFF = "the ledger went away in the middle of a batch"

_NOW = timedelta(0)


class _Unreadable(Exception):  # noqa: N818  what was found
    """Some events of a batch have no body that can be read; by the event's id, why."""

    def __init__(self, errors: Mapping[int, BodyDropped | CannotDecrypt]) -> None:
        super().__init__()
        self.errors = errors


class _Outcome(NamedTuple):
    """The fate of a batch that did not succeed; see `batches.take_apart`."""

    parts: Sequence[Sequence[int]] = ()
    verdicts: Mapping[int, tuple[AttemptResult, BaseException]] = {}
    delay: timedelta = _NOW
    error: str | None = None


class BatchWork:
    """One attempt of a batch; `Work`, as `Executor` asks for it."""

    def __init__(self, host: Host, batch: ClaimedBatch, handler: Handler) -> None:
        self.handler = handler
        self.marking = Marking()
        self.has_started = False
        self._batch = batch
        self._host = host
        self._began = time.monotonic()
        self._lines: Lines | None = None

    @property
    def runs(self) -> Sequence[ClaimedRun]:
        """The runs, in the order in which they became due."""
        return self._batch.runs

    may_follow = False

    def listened(self, listener: Listener) -> AbstractContextManager[object]:
        """Have listeners hear of it."""
        return listener.attempting_batch(self.runs)

    def note_start(self) -> None:
        """Write nothing: a batch is halved, and not charged."""
        self.has_started = True

    def given(self, blocks: Blocks | None) -> object:
        """Return the events. Raises `_Unreadable`, which names all that have no body."""
        self._lines = log_capture.begin()
        events: list[ReceivedEvent] = []
        errors: dict[int, BodyDropped | CannotDecrypt] = {}
        for run in self.runs:
            try:
                events.append(event_of(self._host, run, self.handler, blocks))
            except (BodyDropped, CannotDecrypt) as error:
                errors[run.event.id] = error
        if errors:
            raise _Unreadable(errors)
        return events

    def mark(self, cursor: psycopg.Cursor[Any], by: Marks = ends) -> str:
        """Mark all runs in their handler's transaction."""
        return by.mark_batch(cursor, self.runs)

    def results(self, returned: object) -> Sequence[Any]:
        """Return what is kept of what the handler returned, for each run."""
        self._warn_of_list(returned)
        return endings.results(returned, len(self.runs))

    def end(self, transaction: Transaction, results: Sequence[Any]) -> None:
        """End all runs as done, each with its result, and commit."""
        seal = self._host.shared.sealing.result
        done = self._logged(
            [
                seal(run, AttemptResult(RunStatus.DONE, result))
                for run, result in zip(self.runs, results, strict=True)
            ]
        )
        also = counting_batch(
            self.handler.name, len(done), self._host.shared.failure_rows.after_success(self.handler.name)
        )
        took = timedelta(seconds=time.monotonic() - self._began)
        transaction.end_batch(EndedBatch(self.runs, done, took, also))

    def tell_end(self) -> None:
        """Tell of it."""
        self._report(RunStatus.DONE, len(self.runs))

    def is_ours(self) -> bool:
        """Return whether all runs are still under their token."""
        return batches.is_ours(self._host.connection.begun, self._batch)

    def refused(self, lost: LeaseLost) -> None:
        """Say, and count, that it could not be ended; the line names the first of its events.

        What of it is still under our token comes back with the end of its lease.
        """
        self._host.shared.claims.drop([self._batch.token])
        names = {**endings.names_of(self.runs[0]), "events": len(self.runs)}
        log.warning("lease lost: %s", lost, extra=names)
        self._host.count_refused(self._sources)

    def fail(self, error: BaseException, said: str | None) -> None:  # noqa: ARG002  one run's
        """Take it apart: each half is tried by itself, unless the error says what is to become of which event."""
        reach("failure.rolled_back")
        self._host.connection.reset()
        self._host.discard()  # what a rollback leaves in the session
        outcome = self._outcome(error)
        sealing = self._host.shared.sealing
        committed = replace(
            _committed(endings.text(sealing.said(error))),
            issue=issue_of(self.handler.name, error, None, sealing.release),
        )
        try:
            found = batches.take_apart(
                self._host.connection.idle_ledger,
                self._batch,
                outcome.parts,
                verdicts={event: ending for event, (ending, _) in outcome.verdicts.items()},
                delay=outcome.delay,
                error=outcome.error,
                committed=committed if self.marking.is_marked else None,
                logged=self._logged,
            )
        except Kept:
            leave(self._host, self.runs)
            return
        if found is Apart.LOST:
            self.refused(ends.lost_batch(self.runs))
            return
        if found is Apart.COMMITTED:
            self._host.discard()  # whatever else it did there
            outcome = _Outcome(verdicts={run.event.id: (committed, error) for run in self.runs})
        reach("failure.committed")
        self._tell_failure(outcome, error)

    def over(self) -> None:
        """Let go of the runs."""
        self._host.shared.claims.over(self.runs)

    @property
    def _sources(self) -> AbstractSet[str]:
        return {run.event.source for run in self.runs}

    def _logged(self, ends_of_runs: Sequence[AttemptResult]) -> Sequence[AttemptResult]:
        """Add what the handler has written."""
        if self._lines is None:
            return ends_of_runs
        log_capture.end()
        return self._host.shared.sealing.batch_logs(self.runs, ends_of_runs, self._lines)

    def _outcome(self, error: BaseException) -> _Outcome:
        """Say what is to become of a batch by what its handler raised: of some of its events, or of all alike."""
        errors: dict[int, GiveUp | RetryLater | BodyDropped | CannotDecrypt] = {}
        if isinstance(error, _Unreadable):
            errors |= error.errors
        elif isinstance(error, GiveUp | RetryLater):
            errors = dict.fromkeys(_named(error, self._batch), error)
        if errors:
            verdicts: dict[int, tuple[AttemptResult, BaseException]] = {}
            for run in self.runs:
                if (of_run := errors.get(run.event.id)) is not None:
                    ending = endings.verdict(run, self.handler, of_run, self._host.shared.sealing.said)
                    verdicts[run.event.id] = self._host.shared.sealing.traceback(run, ending, of_run), of_run
            rest = [event for event in self._batch.events if event not in verdicts]
            return _Outcome(parts=[rest] if rest else [], verdicts=verdicts)
        if isinstance(error, RetryLater) and error.event is None:
            ending = endings.verdict(self.runs[0], self.handler, error, self._host.shared.sealing.said)
            if not ending.counted:
                return _Outcome(delay=ending.delay)
        return _Outcome(
            parts=batch_parts.halves(self._batch.events),
            error=endings.text(self._host.shared.sealing.said(error)),
        )

    def _tell_failure(self, outcome: _Outcome, error: BaseException) -> None:
        for run in self.runs:
            if run.event.id in outcome.verdicts:
                log_end(run, outcome.verdicts[run.event.id][0])
        left = len(self.runs) - len(outcome.verdicts)
        self._report(RunStatus.WAITING if left else RunStatus.DEAD, left, error if outcome.error else None)
        if failure_callbacks.callbacks:
            for run in self.runs:
                ending, of_run = outcome.verdicts.get(run.event.id, (None, None))
                if ending is not None and of_run is not None and ending.error is not None:
                    is_dead = ending.status == RunStatus.DEAD
                    self._host.tell_failure(failure_of(run, of_run, is_dead=is_dead))

    def _report(self, status: RunStatus, events: int, error: BaseException | None = None) -> None:
        """Tell of the events of a batch that ended alike; of one that failed always: they have no failures of it."""
        if (listener := self._host.shared.listener) is not None:
            listener.ended_batch(status, has_failed=error is not None)
        said: dict[str, object] = {"handler": self.handler.name, "events": events, "status": status}
        if len(self._sources) == 1:
            said |= {"source": next(iter(self._sources))}
        if error is not None:
            log.warning("a batch failed, each half is tried by itself: %s", whereabouts(error), extra=said)
        elif events:
            log.info("batch", extra=said)

    def _warn_of_list(self, returned: object) -> None:
        """Say once that a list has another length than the batch: each run would keep all of it."""
        if not isinstance(returned, list | tuple) or len(returned) == len(self.runs):
            return
        warned = self._host.shared.warned
        if self.handler.name not in warned:
            warned.add(self.handler.name)
            log.warning(
                "a list of %d was returned for %d events, and is kept with each of them: return one result per event, "
                "in their order, or None",
                len(returned),
                len(self.runs),
                extra={"handler": self.handler.name},
            )


def give_back(host: Host, batch: ClaimedBatch, cut_off: WorkerEnd | None) -> None:
    """Give a batch back, due at once and charged with nothing; in halves where it was cut off."""
    parts = [] if cut_off is None else batch_parts.halves(batch.events)
    error = None if cut_off is None else CUT_OFF
    try:
        batches.take_apart(host.connection.idle_ledger, batch, parts, error=error, committed=_committed(None))
    except Kept:
        leave(host, batch.runs)


def _committed(error: str | None) -> AttemptResult:
    """Return how each run ends of a batch that its handler has committed by itself."""
    return AttemptResult(RunStatus.DEAD, error=endings.committed(error))


def _named(error: GiveUp | RetryLater, batch: ClaimedBatch) -> list[int]:
    """Return the events of a batch that an error is about; none where it is about another, too."""
    about = [error.event] if isinstance(error.event, ReceivedEvent) else list(error.event or ())
    try:
        ids = {event.id for event in about}
    except AttributeError:  # it named something else
        return []
    return sorted(ids) if ids <= set(batch.events) else []
