"""One attempt, from its begin to its end: the handler inside its transaction, under its time limit.

The handler's writes and the run's `done` commit together. When it fails, its writes roll back, and the failure is
written in a transaction of its own. `Executor._make` is the whole way. What differs stands behind two ports: the
transaction that the handler writes in (`jobs.attempts.work`: SQLAlchemy's, Django's, or none that stays open),
and the work that is attempted (`jobs.attempts.work`: one run, or a batch).
"""

import contextvars
import logging
import os
from collections.abc import Callable

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts import batch_attempt, endings, single
from hookonce.jobs.attempts.attempt_connection import AttemptConnection, CutOff
from hookonce.jobs.attempts.batch_attempt import BatchWork
from hookonce.jobs.attempts.calls import Calls
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt
from hookonce.jobs.attempts.handler_transaction import HandlerTransactions
from hookonce.jobs.attempts.long_run import LongTransactions
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.attempts.single import SingleRun
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.transaction_guard import FORKED, RolledBack
from hookonce.jobs.attempts.work import Following, Transactions, Work, nothing
from hookonce.jobs.handlers import Handler
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.steps import LedgerAway
from hookonce.receiver.ledger.runs import leases, takeover
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import LeaseLost
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)

Claimed = ClaimedRun | ClaimedBatch
MakeTransactions = Callable[[AttemptConnection], Transactions]


class Executor:
    """Makes attempts on one connection to the ledger's database; not for two threads at once."""

    def __init__(
        self,
        engine: Engine,
        engine_of_handlers: Engine,
        shared: Shared,
        transactions: MakeTransactions = HandlerTransactions,
    ) -> None:
        """Make attempts on a connection of `engine`; `transactions` says what handlers write in."""
        self.connection = AttemptConnection(engine, engine_of_handlers)
        self.shared = shared
        self.alarm = TimeLimit()
        self.transactions = transactions(self.connection)
        self._long = LongTransactions(self.connection, shared.heartbeat)
        self._calls = Calls(self.transactions.event_loop)
        self._last: Work | None = None
        self.tell_failure: Callable[[FailedAttempt], None] = self.call_back
        """Has the callbacks told of a failed attempt; in another thread, where this one may not wait for them."""

    def attempt(self, claimed: Claimed, handler: Handler, following: Following = nothing) -> None:
        """Attempt a run, or a batch, and end it.

        Where another is `following` at once, its transaction is begun with the end. Raises `psycopg.Error` or
        `SQLAlchemyError` when the database is gone: then nothing was written, or all of it, and what was claimed is to
        be given back (`give_back`) before another is begun.
        """
        self._last = work = self._work(claimed, handler, following)
        if (listener := self.shared.listener) is None:
            self._make(work)
        else:
            with listener.attempting(work.runs):
                self._make(work)
        work.over()

    def _make(self, work: Work) -> None:
        """Begin, call the handler, and end; or fail."""
        handler, alarm, first = work.handler, self.alarm, work.runs[0]
        transactions = self._long if handler.is_long else self.transactions
        call = self._calls.of(handler, alarm)
        self.connection.is_lost = None
        try:
            if first.is_alone:  # its death is charged from now on
                leases.note_start(self.connection.idle_ledger, first)
            transactions.begin(work)
            given = work.given(transactions.blocks)
            with transactions.open(work, alarm) as transaction:
                home = os.getpid()
                with transaction.lent() as lent:
                    work.has_started = True
                    alarm.start(handler.timeout)
                    try:
                        reach("handler.entered")
                        results = work.results(contextvars.copy_context().run(call, given, lent))
                    finally:
                        if os.getpid() != home:  # a child that the handler forked, and let return
                            os._exit(FORKED)
                        alarm.unset()
                reach("handler.returned")
                transaction.require_open()
                work.end(transaction, results)
            reach("run.committed")
            self.connection.clean()
            work.tell_end()
        except CutOff:
            raise
        except (
            BaseException
        ) as error:  # whatever it raises is a failed attempt: signals have handlers of ours
            if isinstance(error, TimeUp):
                alarm.unset()
            elif self._is_cut_off(error):
                raise CutOff(type(error).__name__) from error
            self._fail(work, transactions, self._told(error, handler))

    def _is_cut_off(self, error: BaseException) -> bool:
        """Return whether an attempt failed since a connection of ours went away, or was not to be had."""
        connection = self.connection
        connection.note_loss(connection.driver)
        if _is_for_want_of_a_step_s_connection(error):
            connection.is_lost = bool(connection.is_lost)
        return connection.is_lost is not None and not isinstance(error, endings.VERDICTS)

    def _told(self, error: BaseException, handler: Handler) -> BaseException:
        """Return an error that can be told within the handler's time, or else `TimeUp` in its place."""
        try:
            with self.alarm.limit(handler.timeout):
                str(error)
        except TimeUp:
            return TimeUp()  # of another, which has what takes no end in its context
        except BaseException:  # noqa: BLE001, S110  who tells of it says so
            pass
        return error

    def _fail(self, work: Work, transactions: Transactions, error: BaseException) -> None:
        """End an attempt that has failed, or whose lease is lost."""
        said: str | None = None
        if isinstance(error, TimeUp):
            error.args = self.alarm.time_up().args  # raised from outside it has none
            # The alarm may have cut a call into libpq: the connection is of no further use.
            self.discard()
            said = str(error)
        else:
            self.connection.reset()
        if isinstance(error, LeaseLost):
            if not leases.are_ours(self.connection.begun, work.runs):
                self._refuse(work, error)
                return
            error, said = RolledBack(transactions.rolled_back), transactions.rolled_back
        self._fail_now(work, error, said)

    def _fail_now(self, work: Work, error: BaseException, said: str | None) -> None:
        try:
            work.fail(error, said)
        except LeaseLost as lost:
            self._refuse(work, lost)

    def _refuse(self, work: Work, lost: LeaseLost) -> None:
        """Say, and count for each source, that an attempt could not be ended, since its lease is somebody else's.

        The line names the first event of a batch. Runs of it that are still under our token come back with its lease's
        end.
        """
        runs, names = work.runs, endings.names_of(work.runs[0])
        if len(runs) > 1:
            self.shared.claims.drop([runs[0].token])
            names["events"] = len(runs)
        log.warning("lease lost: %s", lost, extra=names)
        self.discard()  # whatever its handler has left there: no end has taken it out
        try:
            sources = {run.event.source for run in runs}
            counters.add(self.connection.begun, {Tally(Kind.REFUSED, source): 1 for source in sources})
            self.connection.begin().commit()
        except (psycopg.Error, SQLAlchemyError) as error:  # it is only a count
            log.debug("a lost lease was not counted: %s", type(error).__name__)
            self.connection.reset()

    def _work(self, claimed: Claimed, handler: Handler, following: Following = nothing) -> Work:
        if isinstance(claimed, ClaimedRun):
            return SingleRun(self, claimed, handler, following)
        return BatchWork(self, claimed, handler)

    def end_for_lost(self, claimed: Claimed, handler: Handler, error: TimeUp) -> None:
        """End, on our connection, what is under way in another thread and was not ended by its time limit.

        Under its token: whatever that thread does later finds it no longer its own.
        """
        work = self._work(claimed, handler)
        work.marking.is_marked = True  # by what that thread is doing now, maybe
        self._fail_now(work, error, str(error))
        work.over()

    def give_back(self, claimed: Claimed, cut_off: takeover.ConnectionLoss | None = None) -> bool:
        """Give back, on our connection, what is under way: due at once, and not counted. Return whether a run was.

        It is under way in another thread, which finds it no longer its own; or it was `cut_off` here, which says what
        becomes of it. Raises what `attempt` raises.
        """
        if isinstance(claimed, ClaimedBatch):
            batch_attempt.give_back(self, claimed, cut_off)
            self.shared.claims.over(claimed.runs)
            return False
        has_started = self._last is not None and self._last.has_started
        if cut_off is not None:
            cut_off = cut_off._replace(is_own=has_started and self.connection.is_lost is True)
        is_given_back = single.give_back(self, claimed, cut_off)
        self.shared.claims.over([claimed])
        return is_given_back

    def call_back(self, failure: FailedAttempt) -> None:
        """Tell whoever wants to hear of failures; nothing that they do harms the run, which has ended."""
        self._calls.call_back(failure, self.alarm)

    def discard(self) -> None:
        """Close the connections, in whatever state they are."""
        self.connection.discard()
        self.transactions.discard()

    def close(self) -> None:
        """Close the connections and the event loop."""
        self.discard()
        self._calls.close()

    @property
    def ledger(self) -> psycopg.Connection:
        """The connection, for claiming and releasing between attempts."""
        return self.connection.ledger

    @property
    def idle_ledger(self) -> psycopg.Connection:
        """The connection in no transaction (`AttemptConnection.idle_ledger`)."""
        return self.connection.idle_ledger

    @property
    def backend(self) -> int | None:
        """The process id of the backend that handlers write on, if there is one."""
        return self.transactions.backend


def _is_for_want_of_a_step_s_connection(error: BaseException) -> bool:
    """Return whether an error, or what it came of, is that a step found no connection."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        if (each := left.pop()) is None or id(each) in seen:
            continue
        if isinstance(each, LedgerAway):
            return True
        seen.add(id(each))
        left += [each.__cause__, None if each.__suppress_context__ else each.__context__]
        left += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    return False
