"""One run: what its handler is given, and how its attempt ends."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg

from hookonce.jobs.attempts import endings, failure_callbacks
from hookonce.jobs.attempts.attempt_connection import Commit, Marking
from hookonce.jobs.attempts.failure_callbacks import failure_of
from hookonce.jobs.attempts.long_run import lock
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.attempts.work import Blocks, Following, Host, Transaction
from hookonce.jobs.event import ReceivedEvent, received
from hookonce.jobs.handlers import Handler
from hookonce.jobs.steps import steps_of
from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import ends, failed_attempts, leases, marks, takeover
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Also, AttemptResult, Ended
from hookonce.receiver.ledger.runs.marks import Kept, Marked
from hookonce.receiver.ledger.runs.takeover import ConnectionLoss
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import batch_figures
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.monitoring.log_capture import Lines

log = logging.getLogger(__name__)


_DONE = AttemptResult(RunStatus.DONE)


def event_of(host: Host, run: ClaimedRun, handler: Handler, blocks: Blocks | None = None) -> ReceivedEvent:
    """Make what a handler gets of a run. Raises `BodyDropped` and `CannotDecrypt`."""
    shared, event = host.shared, run.event
    shared.sealing.require_key()
    body, key = event.body, event.key_id
    if body is None and event.url is not None and (found := leases.load_body(host.connection.ledger, event)):
        body, key = found
    if body is not None and key is not None:
        body = shared.sealing.opened(event, body, key)
    steps = shared.steps
    make_steps = None
    if steps is not None and handler.batch is None:
        make_steps = partial(steps_of, run, handler, steps, shared.sealing.keyring)
    return received(run, body, shared.provider_of(event.source, event.provider), make_steps, blocks)


class SingleRun:
    """One attempt of one run; `Work`, as `Executor` asks for it."""

    def __init__(self, host: Host, run: ClaimedRun, handler: Handler, following: Following) -> None:
        self.handler = handler
        self.run = run
        self.runs: Sequence[ClaimedRun] = [run]
        self.marking = Marking()
        self.has_started = False
        self._host = host
        self._following = following
        self._began = time.monotonic()
        self._event: ReceivedEvent | None = None
        self._lines: Lines | None = None
        self._ending: AttemptResult = _DONE
        self._ticket: int | None = None  # of the train that it is told of with

    def given(self, blocks: Blocks | None) -> object:
        """Return the event; for a handler of batches a list of it."""
        self._lines = log_capture.begin()
        self._event = event_of(self._host, self.run, self.handler, blocks)
        return [self._event] if self.handler.batch else self._event

    def results(self, returned: object) -> Sequence[Any]:
        """Return what is kept of what the handler returned."""
        return endings.results(returned, 1) if self.handler.batch else [endings.storable(returned)]

    def end(self, transaction: Transaction, results: Sequence[Any]) -> None:
        """End it as done, and commit; a quick one that others follow need not wait for the disk."""
        shared, handler = self._host.shared, self.handler
        has_steps = self._event is not None and self._event.has_steps
        if has_steps and self._event is not None:
            self._event.require_steps_ended()
        also = after_success(shared, handler, 1)
        (result,) = results
        if result is not None or also is not None:
            self._ending = AttemptResult(RunStatus.DONE, result, also=also)
        following = self._following()
        if following is not None and transaction.shares_flushes and self._is_plain(has_steps=has_steps):
            is_wanted = not handler.durable
            if (train := shared.train) is not None and is_wanted and shared.handlers.is_quick(handler.name):
                self._ticket = train.ticket()
        commit = Commit(following is not None, self._ticket is None)
        transaction.end(self._ended(shared.sealing.result(self.run, self._ending)), commit)

    def tell_end(self) -> None:
        """Tell of it now, or with the flush."""
        if self._ticket is None:
            self._tell()
        elif (train := self._host.shared.train) is not None:
            train.board(self._ticket, self.run, self._tell_flushed)

    def fail(self, error: BaseException, said: str | None) -> None:
        """End it as its error says: tried again, or dead."""
        reach("failure.rolled_back")
        sealing, rows, run = self._host.shared.sealing, self._host.shared.failure_rows, self.run
        if isinstance(error, endings.VERDICTS):
            ending = endings.verdict(run, self.handler, error, sealing.said)
        else:
            ending = endings.failure(run, self.handler, sealing.said(error) if said is None else said)
            ending = replace(ending, also=rows.after_failure(self.handler, error))
            if run.is_trial and ending.also is not None:
                ending = endings.of_trial(run, self.handler, ending)
        try:
            # The answer holds until our transaction ends the run: what is still on its way then finds it ended.
            has_committed = self.marking.is_marked and lock(self._host.connection, run)
        except Kept:
            leave(self._host, self.runs)
            return
        if has_committed:
            ending = AttemptResult(RunStatus.DEAD, error=endings.committed(ending.error))
        (ending,) = sealing.logs(self.runs, [sealing.traceback(run, ending, error)], self._lines)
        status = self._write_failure(ending, has_committed=has_committed)
        reach("failure.committed")
        self._host.connection.clean()
        rows.say_if_opened(ending.also)
        self._ending = replace(ending, status=status)
        self._tell()
        if ending.error is not None and failure_callbacks.callbacks:
            self._host.tell_failure(failure_of(run, error, is_dead=status == RunStatus.DEAD))

    def over(self) -> None:
        """Let go of the run, unless it is told of with a flush."""
        if self._ticket is None:
            shared = self._host.shared
            shared.claims.over(self.runs)
            if shared.listener is not None:
                shared.listener.over(self.run)

    def _is_plain(self, *, has_steps: bool) -> bool:
        """Return whether nothing but its effects and its end is committed, and nobody waits for its answer."""
        run = self.run
        has_more = self._ending.also is not None or self.marking.xact_id is not None or has_steps
        is_special = self.handler.batch or run.is_alone or run.event.provider == COMMAND
        return run.event.keep_body and not has_more and not is_special

    def _ended(self, result: AttemptResult) -> Ended:
        """Return its end as done, with what the handler has written."""
        results = self._host.shared.sealing.logs(self.runs, [result], self._lines)
        return Ended(self.runs, results, took_since(self._began), result.also)

    def _write_failure(self, ending: AttemptResult, *, has_committed: bool) -> RunStatus:
        """End an attempt that did not succeed, and commit; return what its run is now. Raises `LeaseLost`."""
        connection = self._host.connection
        if ending.status == RunStatus.DONE:  # a refused command
            sealed = self._host.shared.sealing.result(self.run, ending)
            connection.end(self._ended(sealed), self.marking.unmarked())
            return ending.status
        ledger, transaction = connection.begun, connection.begin()
        found = failed_attempts.fail(ledger, self.runs, [ending], took_since(self._began))
        if not found:
            raise ends.lost(self.runs)
        if ending.also is not None:
            ending.also(ledger)
        if has_committed:
            ledger.execute(*marks.deletion(Marked.of(self.runs)))
        connection.take_out(asks_for_prepared=self.marking.may_have_prepared)
        reach("failure.ended")
        transaction.commit()
        if has_committed:
            self._host.discard()  # whatever else it did there
        (status,) = found.values()
        return status

    def _tell(self) -> None:
        """Tell of an attempt that has ended for good."""
        if (listener := self._host.shared.listener) is not None:
            listener.ended(self.run, self._ending)
        log_end(self.run, self._ending)

    def _tell_flushed(self) -> None:
        """Tell of a run that is durable by now."""
        self._ticket = None
        self._tell()
        self.over()


def give_back(host: Host, run: ClaimedRun, cut_off: ConnectionLoss | None) -> bool:
    """Give a run back, due at once unless it was cut off; return whether it was, and had not ended."""
    try:
        return takeover.settle(host.connection.idle_ledger, run, cut_off) == RunStatus.WAITING
    except Kept:
        leave(host, [run])
        return False


def log_end(run: ClaimedRun, ending: AttemptResult) -> None:
    """Log how a run has ended."""
    if log.isEnabledFor(logging.INFO):
        log.info("run", extra={**endings.names_of(run), "status": ending.status})


def leave(host: Host, runs: Sequence[ClaimedRun]) -> None:
    """Leave runs in their claim whose transaction goes on, nothing ending it: a takeover will find it ended."""
    host.connection.reset()
    host.shared.claims.leave(runs)
    log.warning(
        "a handler's transaction is prepared, or at its COMMIT: its run stays as it is until that has ended",
        extra=endings.names_of(runs[0]),
    )


def took_since(began: float) -> timedelta:
    """Return how long an attempt took that began then, by the monotonic clock."""
    return timedelta(seconds=time.monotonic() - began)


def after_success(shared: Shared, handler: Handler, events: int) -> Also | None:
    """Return what is written with the end of an attempt that succeeds."""
    also = shared.failure_rows.after_success(handler.name)
    return counting_batch(handler.name, events, also) if handler.batch else also


def counting_batch(handler: str, events: int, also: Also | None) -> Also:
    """Return what counts a batch with its end, before what else belongs to that: all lock these rows in one order."""

    def count(connection: psycopg.Connection) -> None:
        batch_figures.count_ended(connection, handler, events)
        if also is not None:
            also(connection)

    return count
