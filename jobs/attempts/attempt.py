"""One attempt, from its begin to its end: the handler inside its transaction, under its time limit.

The handler's writes and the run's `done` commit together. When it fails, its writes roll back, and the failure is
written in a transaction of its own. `Executor._make` is the whole way. What differs stands behind two ports: the
transaction that the handler writes in (`jobs.attempts.work`: SQLAlchemy's, Django's, or none that stays open),
and the work that is attempted (`jobs.attempts.work`: one run, or a batch).
"""

import contextvars
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts import batch_attempt, endings, single
from hookonce.jobs.attempts.attempt_connection import AttemptConnection, EndCutOff
from hookonce.jobs.attempts.batch_attempt import BatchWork
from hookonce.jobs.attempts.calls import Call, Calls
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
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import LeaseLost
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)

Claimed = ClaimedRun | ClaimedBatch
MakeTransactions = Callable[[AttemptConnection], Transactions]


class _EndFailed(BaseException):
    """The end of the attempt before, which was still on its way, has failed; raised where this one would go on."""


class _Way(NamedTuple):
    """How the attempts of one handler are made."""

    transactions: Transactions
    call: Call
    may_follow: bool
    """Whether such an attempt may be begun while the end of the one before is still on its way."""


class Executor:
    """Makes attempts on one connection to the ledger's database; not for two threads at once.

    Where a run follows at once, the end of the one before may still be on its way while that one's handler is called:
    what is sent next waits for it. So Python's work and PostgreSQL's go on at the same time, and no statement of a run
    goes out before the run before is committed.
    """

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
        self._ways: dict[str, _Way] = {}
        self._last: Work | None = None
        self._ending: SingleRun | None = None
        self._failure: BaseException | None = None  # of that end
        self.waited: float = 0.0
        """Seconds that the last attempt has waited for the end of the one before."""
        self.tell_failure: Callable[[FailedAttempt], None] = self.call_back
        """Has the callbacks told of a failed attempt; in another thread, where this one may not wait for them."""

    @property
    def ending(self) -> ClaimedRun | None:
        """The run whose end is on its way, before another that was begun; or was, when the ledger went away."""
        return None if self._ending is None else self._ending.run

    def attempt(self, claimed: Claimed, handler: Handler, following: Following = nothing) -> None:
        """Attempt a run, or a batch, and end it.

        Where another is `following` at once, its transaction is begun with the end, whose outcome may be heard of only
        in its attempt.

        Raises `psycopg.Error` or `SQLAlchemyError` when the database is gone: then nothing was written, or all of it,
        and what was claimed is to be given back (`give_back`) before another is begun.
        """
        self.waited = 0.0
        while True:
            self._last = work = self._work(claimed, handler, following)
            try:
                if (listener := self.shared.listener) is None:
                    self._make(work)
                else:
                    with listener.attempting(work.runs):
                        self._make(work)
            except _EndFailed:  # nothing was sent of this one, so it is begun anew
                with self._waiting():
                    self._fail_ending()
                continue
            if work is not self._ending:
                work.over()
            return

    def _make(self, work: Work) -> None:
        """Begin, call the handler, and end; or fail."""
        handler, alarm, first = work.handler, self.alarm, work.runs[0]
        way = self._ways.get(handler.name) or self._way(handler)
        transactions = way.transactions
        if self._ending is not None and not (way.may_follow and _is_light(first)):
            self._hear_ending()
        try:
            if first.is_alone:  # its death is charged from now on
                leases.note_start(self.connection.idle_ledger, first)
            work.has_started = True
            transactions.begin(work)
            given = work.given(transactions.blocks)
            with transactions.open(work, alarm, self._wait if self._ending else None) as transaction:
                home = os.getpid()
                with transaction.lent() as lent:
                    alarm.start(handler.timeout)
                    try:
                        reach("handler.entered")
                        results = work.results(contextvars.copy_context().run(way.call, given, lent))
                    finally:
                        if os.getpid() != home:  # a child that the handler forked, and let return
                            os._exit(FORKED)
                        alarm.unset()
                reach("handler.returned")
                if self._ending is not None:  # its handler has sent nothing
                    self._hear_ending()
                transaction.require_open()
                work.end(transaction, results)
            if self.connection.is_ending and isinstance(work, SingleRun):
                self._ending = work
                return
            reach("run.committed")
            self.connection.clean()
            work.tell_end()
        except (KeyboardInterrupt, EndCutOff, _EndFailed):
            raise
        except BaseException as error:  # noqa: BLE001  whatever it raises is a failed attempt
            if isinstance(error, TimeUp):
                alarm.unset()
            self._hear_ending()
            self._fail(work, transactions, self._told(error, handler))

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

    def _hear_ending(self) -> None:
        """Hear what has become of the end that is on its way, and tell of it. Raises `_EndFailed`."""
        if (work := self._ending) is None:
            return
        if self._failure is None:
            try:
                with self._waiting():
                    self.connection.hear_end()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  `_fail_ending` tells them apart
                self._failure = error
        if self._failure is not None:
            raise _EndFailed from self._failure
        self._ending = None
        reach("run.committed")
        work.tell_end()
        work.over()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Charge what is done inside to the attempt before."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.waited += time.monotonic() - began

    def _wait(self) -> None:
        """Hear of that end while a handler is under way, whose time limit stands still."""
        self.alarm.hold()
        try:
            self._hear_ending()
        finally:
            self.alarm.go_on()

    def _fail_ending(self) -> None:
        """End as failed the attempt whose end was on its way."""
        work, error = self._ending, self._failure
        self._failure = None
        if work is None or error is None or isinstance(error, EndCutOff):
            raise error or EndCutOff
        self._fail(work, self.transactions, error)
        self._ending = None
        work.over()

    def _way(self, handler: Handler) -> _Way:
        """Return how a handler's attempts are made; told once."""
        transactions = self._long if handler.is_long else self.transactions
        is_plain = not (handler.batch or handler.isolation or handler.signature.is_async)
        way = self._ways[handler.name] = _Way(
            transactions, self._calls.of(handler, self.alarm), transactions.may_follow and is_plain
        )
        return way

    def may_follow(self, run: ClaimedRun) -> bool:
        """Return whether a run's handler may be called while the end of another attempt is on its way here.

        That is one that ends soon: till then nothing is said of the other.
        """
        if not (_is_light(run) and self.shared.handlers.is_quick(run.handler)):
            return False
        if (way := self._ways.get(run.handler)) is None:
            handler = self.shared.handlers.named(run.handler)
            way = self._way(handler) if handler is not None else None
        return way is not None and way.may_follow

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

    def give_back(self, claimed: Claimed, cut_off: WorkerEnd | None = None) -> bool:
        """Give back, on our connection, what is under way: due at once, and not counted. Return whether a run was.

        It is under way in another thread, which finds it no longer its own; or with `cut_off` it was under way here
        when the ledger went away: then a run that was alone is charged by that, and one that is cut off again becomes
        a suspect. Raises what `attempt` raises.
        """
        if isinstance(claimed, ClaimedBatch):
            batch_attempt.give_back(self, claimed, cut_off)
            self.shared.claims.over(claimed.runs)
            return False
        is_ending = self.ending == claimed
        has_started = is_ending or (self._last is not None and self._last.has_started)
        is_given_back = single.give_back(self, claimed, cut_off, has_started=has_started)
        self.shared.claims.over([claimed])
        if is_ending:
            self.forget_ending()
        return is_given_back

    def forget_ending(self) -> None:
        """Wait no longer for what becomes of the end that was on its way."""
        self._ending = self._failure = None

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
        self._ways.clear()

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


def _is_light(run: ClaimedRun) -> bool:
    """Return whether a run needs nothing of the ledger before its handler is called."""
    return not run.is_alone and run.event.body is not None
