"""One attempt of a batch: what its handler is given, and how it ends.

What the handler writes and the end of all its runs commit together, or nothing does. What fails is taken apart: nobody
is charged, and each half is tried by itself (`receiver.ledger.runs.batches`). What is alone is an attempt like any
(`jobs.attempts.attempt`), so only that can use attempts up.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from hookonce.jobs.attempts import endings, failure_callbacks
from hookonce.jobs.attempts.attempt_connection import Marking
from hookonce.jobs.attempts.failure_callbacks import failure_of
from hookonce.jobs.attempts.single import after_success, event_of, leave, log_end, took_since
from hookonce.jobs.attempts.work import Blocks, Host, Transaction
from hookonce.jobs.event import BodyDropped, ReceivedEvent
from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.failures.issues import issue_of
from hookonce.jobs.handlers import GiveUp, Handler, RetryLater
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import batch_parts, batches, ends
from hookonce.receiver.ledger.runs.batches import Apart, ClaimedBatch
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended
from hookonce.receiver.ledger.runs.marks import Kept
from hookonce.receiver.ledger.runs.takeover import ConnectionLoss
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.monitoring.log_capture import Lines

log = logging.getLogger(__name__)

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
        self.runs = batch.runs
        self._batch = batch
        self._host = host
        self._began = time.monotonic()
        self._lines: Lines | None = None

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

    def results(self, returned: object) -> Sequence[Any]:
        """Return what is kept of what the handler returned, for each run."""
        self._warn_of_list(returned)
        return endings.results(returned, len(self.runs))

    def end(self, transaction: Transaction, results: Sequence[Any]) -> None:
        """End all runs as done, each with its result, and commit."""
        shared = self._host.shared
        done = [
            shared.sealing.result(run, AttemptResult(RunStatus.DONE, result))
            for run, result in zip(self.runs, results, strict=True)
        ]
        also = after_success(shared, self.handler, len(done))
        transaction.end(Ended(self.runs, self._logged(done), took_since(self._began), also))

    def tell_end(self) -> None:
        """Tell of it."""
        self._report(RunStatus.DONE, len(self.runs))

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
            raise ends.lost(self.runs)
        if found is Apart.COMMITTED:
            self._host.discard()  # whatever else it did there
            outcome = _Outcome(verdicts={run.event.id: (committed, error) for run in self.runs})
        reach("failure.committed")
        self._tell_failure(outcome, error)

    def over(self) -> None:
        """Let go of the runs."""
        self._host.shared.claims.over(self.runs)

    def _logged(self, results: Sequence[AttemptResult]) -> Sequence[AttemptResult]:
        """Add what the handler has written."""
        return self._host.shared.sealing.logs(self.runs, results, self._lines)

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
        if len(sources := {run.event.source for run in self.runs}) == 1:
            said |= {"source": sources.pop()}
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


def give_back(host: Host, batch: ClaimedBatch, cut_off: ConnectionLoss | None) -> None:
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
