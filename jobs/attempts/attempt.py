"""One attempt, from its begin to its end: the handler inside its transaction, under its time limit.

The handler's writes and the run's `done` commit together. When it fails, its writes roll back, and the failure is
written in a transaction of its own. `Executor._make` is the whole way. What differs stands behind two ports: the
transaction that the handler writes in (`jobs.attempts.work`: SQLAlchemy's, Django's, or none that stays open),
and the work that is attempted (`jobs.attempts.work`: one run, or a batch).
"""

import logging
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts import batch_attempt, single
from hookonce.jobs.attempts.attempt_connection import AttemptConnection, EndCutOff
from hookonce.jobs.attempts.batch_attempt import BatchWork
from hookonce.jobs.attempts.calls import Calls
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt
from hookonce.jobs.attempts.handler_transaction import HandlerTransactions
from hookonce.jobs.attempts.long_run import LongTransactions
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.attempts.single import SingleRun
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.transaction_guard import ExitForkedChildren, RolledBack
from hookonce.jobs.attempts.work import HasNext, Transactions, Work, no_next
from hookonce.jobs.handlers import Handler
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import LeaseLost
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)

Claimed = ClaimedRun | ClaimedBatch
MakeTransactions = Callable[[AttemptConnection], Transactions]


class Executor:
    """Makes attempts on one connection to the ledger's database; not for two threads at once."""

    def __init__(
        self, engine: Engine, shared: Shared, transactions: MakeTransactions = HandlerTransactions
    ) -> None:
        """Make attempts on a connection of `engine`; `transactions` says what handlers write in."""
        self.connection = AttemptConnection(engine)
        self.shared = shared
        self.alarm = TimeLimit()
        self.transactions = transactions(self.connection)
        self._long = LongTransactions(self.connection, shared.heartbeat)
        self._calls = Calls(self.transactions.event_loop)
        self._last: Work | None = None
        self.tell_failure: Callable[[FailedAttempt], None] = self.call_back
        """Has the callbacks told of a failed attempt; in another thread, where this one may not wait for them."""

    def attempt(self, claimed: Claimed, handler: Handler, has_next: HasNext = no_next) -> None:
        """Attempt a run, or a batch, and end it; where another follows at once, its transaction is begun with the end.

        Raises `psycopg.Error` or `SQLAlchemyError` when the database is gone: then nothing was written, or all of it,
        and what was claimed is to be given back (`give_back`) before another is begun.
        """
        self._last = work = self._work(claimed, handler, has_next)
        with work.listened():
            self._make(work)
        work.over()

    def _make(self, work: Work) -> None:
        """Begin, call the handler, and end; or fail."""
        handler, transactions = work.handler, self._transactions_of(work.handler)
        failed: BaseException
        said: str | None = None
        try:
            work.note_start()
            transactions.begin(work)
            given = work.given(transactions.blocks)
            with transactions.open(work, self.alarm) as transaction:
                with transaction.lent() as lent, self.alarm.limit(handler.timeout), ExitForkedChildren():
                    reach("handler.entered")
                    returned = self._calls.of(handler, self.alarm)(given, lent)
                reach("handler.returned")
                transaction.require_open()
                work.end(transaction, returned)
            reach("run.committed")
            work.tell_end()
        except LeaseLost as lost:
            self.connection.reset()
            if not work.is_ours():
                work.refused(lost)
                return
            failed, said = RolledBack(transactions.rolled_back), transactions.rolled_back
        except TimeUp as late:
            self.alarm.unset()
            late.args = self.alarm.time_up().args  # raised from outside it has none
            # The alarm may have cut a call into libpq: the connection is of no further use.
            self.discard()
            failed, said = late, str(late)
        except (KeyboardInterrupt, EndCutOff):
            raise
        except BaseException as raised:  # noqa: BLE001  whatever it raises is a failed attempt
            self.connection.reset()
            failed = raised
        else:
            return
        work.fail(failed, said)

    def _transactions_of(self, handler: Handler) -> Transactions:
        return self._long if handler.is_long else self.transactions

    def _work(self, claimed: Claimed, handler: Handler, has_next: HasNext = no_next) -> Work:
        if isinstance(claimed, ClaimedRun):
            return SingleRun(self, claimed, handler, has_next)
        return BatchWork(self, claimed, handler)

    def end_for_lost(self, claimed: Claimed, handler: Handler, error: TimeUp) -> None:
        """End, on our connection, what is under way in another thread and was not ended by its time limit.

        Under its token: whatever that thread does later finds it no longer its own.
        """
        work = self._work(claimed, handler)
        work.marking.is_marked = True  # by what that thread is doing now, maybe
        work.fail(error, str(error))
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
        has_started = self._last is not None and self._last.has_started
        is_given_back = single.give_back(self, claimed, cut_off, has_started=has_started)
        self.shared.claims.over([claimed])
        return is_given_back

    def count_refused(self, sources: AbstractSet[str]) -> None:
        """Count an end that was refused, for each of the sources of what was not ended."""
        self.discard()  # whatever its handler has left there: no end has taken it out
        try:
            counters.add(self.connection.begun, {Tally(Kind.REFUSED, source): 1 for source in sources})
            self.connection.begin().commit()
        except (psycopg.Error, SQLAlchemyError) as error:  # it is only a count
            log.debug("a lost lease was not counted: %s", type(error).__name__)
            self.connection.reset()

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

    @contextmanager
    def ledger_for_once(self) -> Iterator[psycopg.Connection]:
        """Lend another connection of the engine, for other threads."""
        with self.connection.for_once() as connection:
            yield connection
