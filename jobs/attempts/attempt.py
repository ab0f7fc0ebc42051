"""One attempt, from its begin to its end: the handler inside its transaction, under its time limit.

The handler's writes and the run's `done` commit together. When it fails, its writes roll back, and the failure is
written in a transaction of its own (`jobs.attempts.failing`). `Executor._make` is the whole way of a run and of a
batch. The transactions that handlers write in differ behind a port (`jobs.attempts.ports`).
"""

import contextvars
import logging
import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import psycopg
from sqlalchemy import Engine

from hookonce.jobs.attempts import endings, failing
from hookonce.jobs.attempts.attempt_connection import AttemptConnection, CutOff
from hookonce.jobs.attempts.calls import FORKED, Calls
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt
from hookonce.jobs.attempts.handler_event import event_of
from hookonce.jobs.attempts.long_run import LongTransactions
from hookonce.jobs.attempts.ports import Attempt, Blocks, Claimed, ShortTransactions, Transaction
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.event import BodyDropped
from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.handlers import Handler
from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Also, AttemptResult, Ended
from hookonce.receiver.ledger.runs.takeover import ConnectionLoss
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.monitoring import log_capture

log = logging.getLogger(__name__)

MakeTransactions = Callable[[AttemptConnection], ShortTransactions]
Following = Callable[[], ClaimedRun | None]
"""Takes the run that follows at once, if one does."""

_DONE = AttemptResult(RunStatus.DONE)


def nothing() -> None:
    """Return that no other run follows."""


class Executor:
    """Makes attempts on one connection to the ledger's database; not for two threads at once."""

    def __init__(
        self,
        engine: Engine,
        engine_of_handlers: Engine,
        shared: Shared,
        transactions: MakeTransactions = HandlerTransactions,
    ) -> None:
        """Make attempts on a connection of `engine`; `transactions` makes the transactions that handlers write in."""
        self.connection = AttemptConnection(engine, engine_of_handlers)
        self.shared = shared
        self.alarm = TimeLimit()
        self.transactions = transactions(self.connection)
        self._long = LongTransactions(self.connection, shared.heartbeat)
        self._calls = Calls(self.transactions.event_loop, self.transactions.entities)
        self._last: Attempt | None = None
        self.tell_failure: Callable[[FailedAttempt], None] = self.call_back
        """Has the callbacks called for a failed attempt; in another thread, where this one may not wait for them."""

    def attempt(self, attempt: Attempt, following: Following = nothing) -> None:
        """Attempt a run, or a batch, and end it.

        Where another is `following` at once, its transaction is begun with the end. Raises `psycopg.Error` or
        `SQLAlchemyError` when the database is gone: then nothing was written, or all of it, and what was claimed is to
        be given back (`give_back`) before another is begun.
        """
        self._last = attempt
        if (listener := self.shared.listener) is None:
            self._make(attempt, following)
        else:
            with listener.attempting(attempt.runs):
                self._make(attempt, following)
        if attempt.ticket is None:
            self._let_go(attempt)

    def _make(self, attempt: Attempt, following: Following) -> None:
        """Begin, call the handler, and end; or fail."""
        handler = attempt.handler
        transactions = self._long if handler.is_long else self.transactions
        call = self._calls.known.get(handler.name) or self._calls.of(handler, self.alarm)
        self.connection.is_lost = None
        try:
            if attempt.run.is_suspect:  # its death is charged from now on
                leases.note_start(self.connection.idle_ledger, attempt.run)
            transactions.begin(attempt)
            self._read_events(attempt, transactions.blocks)
            with transactions.open(attempt, self.alarm) as transaction:
                home = os.getpid()
                with transaction.lent() as lent:
                    attempt.has_started = True
                    self.alarm.start(handler.timeout)
                    try:
                        reach("handler.entered")
                        given = attempt.events if handler.batch else attempt.events[0]
                        returned = contextvars.copy_context().run(call, given, lent)
                        results = self._results(attempt, returned)
                    finally:
                        if os.getpid() != home:  # a child that the handler forked, and let return
                            os._exit(FORKED)
                        self.alarm.unset()
                reach("handler.returned")
                transaction.require_open()
                self._end(attempt, transaction, results, following)
            reach("run.committed")
            self.connection.clean()
            self._tell_end(attempt)
        except CutOff:
            raise
        except BaseException as error:  # noqa: BLE001  a failed attempt, whatever it raises: signals have handlers of ours
            failing.fail(self, attempt, error, transactions.rolled_back)

    def _read_events(self, attempt: Attempt, blocks: Blocks | None) -> None:
        """Make the events that the handler is given; lines that are written from here on belong to the attempt.

        Raises `BodyDropped` and `CannotDecrypt`; for a batch `Unreadable`, with all that can't be read.
        """
        attempt.lines = log_capture.begin() if log_capture.Installed.level else None
        errors: dict[int, BodyDropped | CannotDecrypt] = {}
        for run in attempt.runs:
            try:
                attempt.events.append(event_of(self.shared, self.connection, run, attempt.handler, blocks))
            except (BodyDropped, CannotDecrypt) as error:
                if not attempt.is_batch:
                    raise
                errors[run.event.id] = error
        if errors:
            raise endings.Unreadable(errors)

    def _results(self, attempt: Attempt, returned: object) -> Sequence[Any]:
        """Return what the handler returned, for each run. Raises `TypeError` for what is not JSON."""
        count = len(attempt.runs)
        if returned is None:
            return [None] * count
        if attempt.handler.batch is None:
            return [endings.storable(returned)]
        if attempt.is_batch and isinstance(returned, list | tuple) and len(returned) != count:
            self._warn_of_list(attempt.handler, len(returned), count)
        return endings.results(returned, count)

    def _warn_of_list(self, handler: Handler, length: int, count: int) -> None:
        """Warn once of a list with another length than its batch: each run would keep all of it."""
        if handler.name not in self.shared.warned:
            self.shared.warned.add(handler.name)
            log.warning(
                "a list of %d was returned for %d events, and is kept with each of them: return one result per event, "
                "in their order, or None",
                length,
                count,
                extra={"handler": handler.name},
            )

    def _end(
        self, attempt: Attempt, transaction: Transaction, results: Sequence[Any], following: Following
    ) -> None:
        """End it as done, and commit; a quick run that others follow need not wait for the disk."""
        shared, handler, runs = self.shared, attempt.handler, attempt.runs
        has_capabilities = False
        for event in attempt.events:
            for capability in event.capabilities.values():
                has_capabilities = True
                capability.require_ended()
        also = shared.failure_streaks.after_success(handler.name)
        if handler.batch:
            also = counting_batch(handler.name, len(runs), also)
        begins_next = not attempt.is_batch and following() is not None
        if begins_next and transaction.shares_flushes and also is None and not has_capabilities:
            attempt.ticket = self._ticket(attempt)
        done = [_DONE if each is None else AttemptResult(RunStatus.DONE, each) for each in results]
        attempt.results = done
        if attempt.lines is not None or shared.sealing.keyring.is_on:
            attempt.results = shared.sealing.results(runs, done, attempt.lines)
        took = timedelta(seconds=time.monotonic() - attempt.began)
        ended = Ended(runs, attempt.results, took, also, handler.timeout - took)
        transaction.end(ended, begins_next=begins_next, waits_for_flush=attempt.ticket is None)

    def _ticket(self, attempt: Attempt) -> int | None:
        """Return the ticket of a run of which nothing but its effects and its end is committed; nobody awaits it."""
        shared, run, handler = self.shared, attempt.run, attempt.handler
        is_special = handler.batch or handler.durable or run.is_suspect or run.event.provider == COMMAND
        if shared.train is None or is_special:
            return None
        if not run.event.keep_body or not shared.handlers.is_quick(handler.name):
            return None
        return shared.train.ticket()

    def _tell_end(self, attempt: Attempt) -> None:
        """Tell of an end that is committed, now or with the flush; then make the calls that capabilities have left."""
        if attempt.ticket is None:
            self.tell(attempt)
            calls: list[Callable[[], object]] = []
            for event in attempt.events:
                for capability in event.capabilities.values():
                    calls += capability.calls
            if calls:
                self._calls.make(calls, self.alarm, attempt.handler.timeout, "a call after the commit")
        elif (train := self.shared.train) is not None:
            attempt.tell_flushed = self._tell_flushed
            train.board(attempt)

    def _tell_flushed(self, attempt: Attempt) -> None:
        self.tell(attempt)
        self._let_go(attempt)

    def tell(self, attempt: Attempt) -> None:
        """Log and trace the end of an attempt, which is durable."""
        if attempt.is_batch:
            self.tell_of_batch(attempt, RunStatus.DONE, len(attempt.runs), None)
            return
        run, (ending,) = attempt.run, attempt.results
        if (listener := self.shared.listener) is not None:
            listener.ended(run, ending)
        self.shared.tally.add(ending.status)
        if log.isEnabledFor(logging.INFO):
            log.info("run", extra={**endings.names_of(run), "status": ending.status})

    def tell_of_batch(
        self, attempt: Attempt, status: RunStatus, events: int, error: BaseException | None
    ) -> None:
        """Log and trace so many events of a batch that ended alike; where it failed, nobody is charged."""
        if (listener := self.shared.listener) is not None:
            listener.ended_batch(status, has_failed=error is not None)
        self.shared.tally.add(status, events)
        fields: dict[str, object] = {"handler": attempt.handler.name, "events": events, "status": status}
        if len(sources := {run.event.source for run in attempt.runs}) == 1:
            fields |= {"source": sources.pop()}
        if error is not None:
            log.warning("a batch failed, each half is tried by itself: %s", whereabouts(error), extra=fields)
        elif events:
            log.info("batch", extra=fields)

    def _let_go(self, attempt: Attempt) -> None:
        """Let go of runs that are over: their leases are renewed no more."""
        self.shared.claims.over(attempt.runs)
        if not attempt.is_batch and (listener := self.shared.listener) is not None:
            listener.over(attempt.run)

    def end_for_lost(self, claimed: Claimed, handler: Handler, error: TimeUp) -> None:
        """End, on our connection, what is under way in another thread and was not ended by its time limit.

        Under its token: whatever that thread does later finds it no longer its own.
        """
        attempt = Attempt(claimed, handler)
        failing.end_failed(self, attempt, error, str(error))
        self._let_go(attempt)

    def give_back(self, claimed: Claimed, cut_off: ConnectionLoss | None = None) -> bool:
        """Give back, on our connection, what is under way: due at once, and not counted. Return whether a run was.

        It is under way in another thread, which finds it no longer its own; or it was `cut_off` here, which decides
        what becomes of it. Raises what `attempt` raises.
        """
        if cut_off is not None:
            has_started = self._last is not None and self._last.has_started
            cut_off = cut_off._replace(is_own=has_started and self.connection.is_lost is True)
        is_given_back = failing.give_back(self, claimed, cut_off)
        self.shared.claims.over(claimed)
        return is_given_back

    def call_back(self, failure: FailedAttempt) -> None:
        """Call the callbacks of `on_failure`; nothing that they do harms the run, which has ended."""
        self._calls.call_back(failure, self.alarm)

    def discard(self) -> None:
        """Close the connections, in whatever state they are."""
        self.connection.discard()
        self.transactions.discard()

    def close(self) -> None:
        """Close the connections and the event loop; none is opened any more."""
        self.connection.has_ended = True
        self.discard()
        self._calls.close()

    @property
    def idle_ledger(self) -> psycopg.Connection:
        """The connection in no transaction (`AttemptConnection.idle_ledger`)."""
        return self.connection.idle_ledger

    @property
    def backend(self) -> int | None:
        """The process id of the backend that handlers write on, if there is one."""
        return self.transactions.backend


def counting_batch(handler: str, events: int, also: Also | None) -> Also:
    """Return what counts a batch with its end, before what else belongs to that: all lock these rows in one order."""

    def count(connection: psycopg.Connection) -> None:
        counters.count_batch(connection, handler, events)
        if also is not None:
            also(connection)

    return count
