"""One attempt of one run: the handler inside its transaction, under its time limit, and how it ended.

The handler's writes and the run's `done` commit together. When it fails, its writes roll back, and the
failure is written in a transaction of its own, under the same guard. Whether they did roll back a mark tells, where
that is in doubt: a handler that has committed gets no further attempt (docs/decisions/0032).
"""

import json
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts import endings, failure_callbacks
from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.batch_results import alone
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt, failure_of
from hookonce.jobs.attempts.failure_rows import FailureRows
from hookonce.jobs.attempts.handler_transaction import require_at_rest, set_isolation
from hookonce.jobs.attempts.heartbeat import Heartbeat
from hookonce.jobs.attempts.held_claims import HeldClaims
from hookonce.jobs.attempts.listener import Listener
from hookonce.jobs.attempts.long_run import LongRun, OverlongBlock
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.train import Train
from hookonce.jobs.attempts.transaction_guard import (
    ROLLED_BACK,
    TRANSACTION_CHANGED,
    ExitForkedChildren,
    RolledBack,
    TransactionGuard,
)
from hookonce.jobs.error_summary import message_of, summarize, whereabouts
from hookonce.jobs.event import BodyDropped, ReceivedEvent, Refusal, StepError, received
from hookonce.jobs.handlers import GiveUp, Handler, RetryLater
from hookonce.jobs.steps import StepStopped, steps_of
from hookonce.jobs.traceback_text import traceback_text
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.encryption import (
    OFF,
    CannotDecrypt,
    KeyMissing,
    Keyring,
    body_context,
    result_context,
    traceback_context,
)
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.postgresql import Connections
from hookonce.receiver.idempotency.records import StoreUnavailable
from hookonce.receiver.ledger.runs import ends, leases, marks, takeover
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import Also, AttemptResult, LeaseLost
from hookonce.receiver.ledger.runs.marks import Kept, Marked
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

if TYPE_CHECKING:
    from hookonce.jobs.attempts.coroutines import EventLoop

log = logging.getLogger(__name__)

VERDICTS = (GiveUp, RetryLater, Refusal, BodyDropped, CannotDecrypt)
"""Errors that say themselves what is to become of the run."""
OURS = (
    TimeUp,
    RolledBack,
    OverlongBlock,
    BodyDropped,
    CannotDecrypt,
    StepError,
    StepStopped,
    StoreUnavailable,
)
"""Errors whose text is ours, and quotes nothing of the event's."""
HasNext = Callable[[], bool]
"""Returns whether another run follows at once."""


class EndCutOff(psycopg.OperationalError):
    """The connection broke while an attempt whose handler had returned was ended: it may be ended, or not."""


class Executor(AttemptConnection):
    """Runs claimed runs on one connection to the ledger's database; not for two threads at once."""

    rolled_back = ROLLED_BACK
    """What is said of a handler that has rolled its transaction back."""

    def __init__(
        self,
        engine: Engine,
        provider_of: Callable[[str, str], Provider | None],
        keyring: Keyring = OFF,
        mask: Callable[[str], str] = str,
        steps: Connections | None = None,
    ) -> None:
        """Run on connections of `engine`; `mask` takes secrets out of the tracebacks that are kept.

        `provider_of` gives what reads a source's bodies, also by the provider's name. `steps` lends the connections
        that steps are written on; without it there are none.
        """
        super().__init__(engine)
        self._steps = steps
        self._keyring = keyring
        self._mask = mask
        self._provider_of = provider_of
        self._xact_id: str | None = None  # of the attempt's own transaction, if it is marked
        self._is_marked = False  # or may be
        self._has_to_unmark = False
        self._is_chained = False  # to the attempt before
        self.alarm = TimeLimit()
        self.failure_rows = FailureRows()
        self.claims = HeldClaims()
        self.heartbeat = Heartbeat(self.claims, self.ledger_for_once)
        self._began = 0.0
        self.listener = Listener()
        self.train: Train | None = None
        self.is_quick: Callable[[str], bool] = lambda _: False
        self._has_entered = False  # the handler of the attempt that was made last
        self._is_aboard = False  # the attempt that was made last: it is settled with the flush
        self.guard: TransactionGuard | None = None  # of the handler under way, or the one before
        self._loop: EventLoop | None = None  # for `async def` handlers, once there is one
        self.tell_failure: Callable[[FailedAttempt], None] = self.call_back
        """Has the callbacks told of a failed attempt; in another thread, where this one may not wait for them."""

    def attempt(self, run: ClaimedRun, handler: Handler, has_next: HasNext) -> None:
        """Make one attempt and end it; where another follows at once, that one's transaction is begun with the end.

        Raises `psycopg.Error` or `SQLAlchemyError` when the database is gone: then nothing was written, or all of it,
        and the run is to be settled (`receiver.ledger.runs.takeover.settle`) before another is begun.
        """
        self._began = time.monotonic()
        self._is_aboard = self._has_entered = False
        with self.listener.attempting(run):
            self._make(run, handler, has_next)
        if not self._is_aboard:
            self._settled(run)

    def _make(self, run: ClaimedRun, handler: Handler, has_next: HasNext) -> None:
        try:
            self._attempt(run, handler, has_next)
        except LeaseLost as lost:
            self._reset()
            if not leases.is_ours(self._begun(), run):
                self._refused(run, lost)
                return
            error: BaseException = RolledBack(self.rolled_back)
            ending = endings.failure(run, handler, self.rolled_back)
        except TimeUp as late:
            self.alarm.unset()
            late.args = self.alarm.time_up().args  # raised from outside it has none
            # The alarm may have cut a call into libpq: the connection is of no further use.
            self.discard()
            error, ending = late, endings.failure(run, handler, str(late))
        except VERDICTS as verdict:
            self._reset()
            error, ending = verdict, endings.verdict(run, handler, verdict, self._said)
        except (KeyboardInterrupt, EndCutOff):
            raise
        except BaseException as raised:  # noqa: BLE001  whatever it raises is a failed attempt
            self._reset()
            error, ending = raised, endings.failure(run, handler, self._said(raised))
        else:
            return
        if not isinstance(error, VERDICTS):
            ending = replace(ending, also=self.failure_rows.after_failure(handler, error))
            if run.is_trial and ending.also is not None:
                ending = endings.of_trial(run, handler, ending)
        self._end_apart(run, ending, error)

    def _attempt(self, run: ClaimedRun, handler: Handler, has_next: HasNext) -> None:
        self._start_anew()
        self._note_start(run)
        if handler.is_long:
            self._attempt_long(run, handler)
            return
        self._begin(handler)
        event, call = self._event(run, handler), self._call_of(handler)
        mark = partial(ends.mark, run=run)
        result = self._called(handler, partial(alone, call) if handler.batch else call, event, mark)
        event.require_steps_ended()
        self._succeed(run, handler, result, has_next, may_ride=not event.has_steps)

    def _note_start(self, run: ClaimedRun) -> None:
        """Write down that a suspect's handler is about to be called, so that its death is charged."""
        if run.is_alone:
            leases.note_start(self.idle_ledger, run)
        self._has_entered = True

    def _start_anew(self) -> None:
        """Forget the attempt before, and meet nobody else's transaction."""
        self._xact_id, self._is_marked, self.guard = None, False, None
        if not self._is_chained:
            self._require_idle()
        self._is_chained = False

    def _attempt_long(self, run: ClaimedRun, handler: Handler) -> None:
        """Make an attempt whose handler opens its transactions itself; while it waits it holds no connection."""
        work = LongRun(self, run)
        self._reset()
        event = self._event(run, handler, work.transaction)
        self.put_back()
        self._is_marked = True  # none of its transactions is, but one may go on that has locked the run
        with self.heartbeat.cutting(work):
            try:
                with self.alarm.limit(handler.timeout), ExitForkedChildren():
                    reach("handler.entered")
                    result = handler.function(event)
            finally:
                work.end()
            reach("handler.returned")
            event.require_steps_ended()
            self._lock_run(run)
            self._succeed(run, handler, result, lambda: False)

    def _succeed(
        self,
        run: ClaimedRun,
        handler: Handler,
        result: object,
        has_next: HasNext,
        *,
        may_ride: bool = False,
    ) -> None:
        """End an attempt whose handler has returned, and tell of it; `may_ride`: it need not wait for the disk."""
        ending = AttemptResult(RunStatus.DONE, endings.storable(result), also=self._after_success(handler))
        is_followed = has_next()
        train = self.train if may_ride and is_followed and self._may_ride(run, handler, ending) else None
        ticket = None if train is None else train.ticket()
        self._end(run, ending, has_next=is_followed, waits_for_flush=ticket is None)
        reach("run.committed")
        self._clean()
        if train is not None and ticket is not None:
            self._is_aboard = True
            train.board(ticket, run, partial(self._say, run, ending))
        else:
            self._report(run, ending)

    def _may_ride(self, run: ClaimedRun, handler: Handler, ending: AttemptResult) -> bool:
        """Return whether a run need not wait for the disk: it is quick, plain, and nobody waits for its answer."""
        is_plain = ending.also is None and self._xact_id is None and run.event.keep_body
        is_wanted = not (handler.durable or handler.batch or run.is_alone or run.event.provider == COMMAND)
        return is_plain and is_wanted and self.is_quick(handler.name)

    def _say(self, run: ClaimedRun, ending: AttemptResult) -> None:
        """Tell of a run that is durable by now."""
        self._report(run, ending)
        self._settled(run)

    def _settled(self, run: ClaimedRun) -> None:
        self.claims.settled([run])
        self.listener.settled(run)

    def _took(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._began)

    def _after_success(self, handler: Handler) -> Also | None:
        """Return what is written with the end of an attempt that succeeds."""
        return self.failure_rows.after_success(handler.name)

    def _called(
        self,
        handler: Handler,
        call: Callable[[Any, Connection], object],
        given: object,
        mark: Callable[[psycopg.Cursor[Any]], str],
    ) -> object:
        """Call a handler in the transaction that was begun; return what it returned, if that can be committed."""
        guard = self.guard = TransactionGuard(self.connection, self.adopt, mark)
        try:
            # What is entered last is left first: a forked child ends before anything else does.
            with guard, self.alarm.limit(handler.timeout), ExitForkedChildren():
                reach("handler.entered")
                result = call(given, self.connection)
        finally:
            self._xact_id, self._is_marked = guard.xact_id, guard.is_marked
        reach("handler.returned")
        guard.require_open()
        require_at_rest(self.ledger)
        return result

    def _call_of(self, handler: Handler) -> Callable[[Any, Connection], object]:
        """Return what calls a handler with what its signature asks for; what that needs is imported here."""
        if handler.signature.is_async:
            return partial(self._event_loop().call, handler.function, handler.signature)
        if handler.signature.takes_session:
            from hookonce.jobs.attempts import orm_session

            return partial(orm_session.call, handler.function, handler.signature.session_class)
        return handler.function

    def _event_loop(self) -> "EventLoop":
        if self._loop is None:
            from hookonce.jobs.attempts.coroutines import EventLoop

            self._loop = EventLoop(self.alarm)
        return self._loop

    def _begin(self, handler: Handler) -> None:
        """Begin the attempt's transaction, if the end of the one before has not."""
        if handler.isolation and (chained := self.connection.get_transaction()):
            chained.rollback()
        self.begin()
        if handler.isolation:
            self.ledger.execute(set_isolation(handler.isolation))
            self.connection.info[TRANSACTION_CHANGED] = True

    def _event(
        self,
        run: ClaimedRun,
        handler: Handler,
        transactions: Callable[[], AbstractContextManager[Connection]] | None = None,
    ) -> ReceivedEvent:
        event = run.event
        self._keyring.encrypt(b"", ("test",))  # what a handler returns could else not be stored
        found = None if event.body is None else (event.body, event.key_id)
        if found is None and event.url is not None:
            found = leases.load_body(self.ledger, event)
        bond = body_context(event.source, event.event_id, event.fingerprint)
        body = None if found is None else self._keyring.open(*found, bond)
        make_steps = None
        if self._steps is not None and handler.batch is None:
            make_steps = partial(steps_of, run, handler, self._steps, self._keyring)
        return received(run, body, self._provider_of(event.source, event.provider), make_steps, transactions)

    def _end_apart(self, run: ClaimedRun, ending: AttemptResult, error: BaseException) -> None:
        """End an attempt whose own writes are rolled back; dead, should they be committed after all."""
        reach("failure.rolled_back")
        try:
            has_committed = self._has_committed(run)
        except Kept:
            self.leave([run])
            return
        if has_committed:
            ending = AttemptResult(RunStatus.DEAD, error=endings.committed(ending.error))
        try:
            status = self._fail(run, self._with_traceback(run, ending, error))
        except LeaseLost as lost:
            self._refused(run, lost)
            return
        reach("failure.committed")
        self._clean()
        self.failure_rows.say_if_opened(ending.also)
        self._report(run, replace(ending, status=status))
        if ending.error is not None and failure_callbacks.callbacks:
            self.tell_failure(failure_of(run, error, is_dead=status == RunStatus.DEAD))

    def _fail(self, run: ClaimedRun, ending: AttemptResult) -> RunStatus:
        """End an attempt that did not succeed, and commit; return what its run is now. Raises `LeaseLost`."""
        if ending.status == RunStatus.DONE:  # a refused command
            self._end(run, ending)
            return ending.status
        transaction = self.begin()
        found = ends.fail(self.ledger, [run], [ending], self._took())
        if not found:
            raise ends.lost(run)
        if ending.also is not None:
            ending.also(self.ledger)
        if self._has_to_unmark:
            marks.delete(self.ledger, Marked.of(run.key))
        guard = self.guard
        self.take_out(asks_for_prepared=guard is not None and guard.may_have_prepared)
        reach("failure.ended")
        transaction.commit()
        if self._has_to_unmark:
            self.discard()  # whatever else it did there
        (status,) = found.values()
        return status

    def leave(self, runs: Sequence[ClaimedRun]) -> None:
        """Leave runs in their claim whose transaction goes on, nothing ending it: a takeover will find it ended."""
        self._reset()
        self.claims.leave(runs)
        log.warning(
            "a handler's transaction is prepared, or at its COMMIT: its run stays as it is until that has ended",
            extra=endings.names_of(runs[0]),
        )

    def _refused(self, run: ClaimedRun, lost: LeaseLost) -> None:
        """Say, and count, that an attempt could not be ended, since its lease is somebody else's."""
        log.warning("lease lost: %s", lost, extra=endings.names_of(run))
        self._count_refused({run.event.source})

    def _count_refused(self, sources: AbstractSet[str]) -> None:
        """Count an end that was refused, for each of the sources of what was not ended."""
        self.discard()  # whatever its handler has left there: no end has taken it out
        try:
            counters.add(self._begun(), {Tally(Kind.REFUSED, source): 1 for source in sources})
            self.begin().commit()
        except (psycopg.Error, SQLAlchemyError) as error:  # it is only a count
            log.debug("a lost lease was not counted: %s", type(error).__name__)
            self._reset()

    def _with_traceback(self, run: ClaimedRun, ending: AttemptResult, error: BaseException) -> AttemptResult:
        """Add the traceback to a failure; sealed it may tell more, and what the error says besides."""
        if ending.error is None:
            return ending
        text = traceback_text(error, with_details=self._keyring.is_on) or self._left_out(error)
        if text is None:
            return ending
        plain = endings.storable_text(self._mask(text)).encode()
        try:
            sealed, key = self._keyring.encrypt(
                plain, traceback_context(run.event.id, run.handler, run.cycle, run.attempt)
            )
        except KeyMissing:  # what should be sealed must not be stored open
            return ending
        return replace(ending, traceback=sealed, key_id=key)

    def _said(self, error: BaseException) -> str:
        """Return what is kept of an error in the clear: where things are sealed, its class and place."""
        if not self._keyring.is_on:
            return message_of(error) if isinstance(error, VERDICTS) else summarize(error)
        return message_of(error) if isinstance(error, OURS) else whereabouts(error)

    def _left_out(self, error: BaseException) -> str | None:
        """Return what an error says, where that is not said in the clear."""
        return summarize(error) if self._keyring.is_on and not isinstance(error, OURS) else None

    def _sealed(self, run: ClaimedRun, ending: AttemptResult) -> AttemptResult:
        """Seal what a handler returned, where bodies are sealed. Raises `KeyMissing`."""
        if ending.result is None or not self._keyring.is_on:
            return ending
        plain = json.dumps(ending.result).encode()
        text, key = self._keyring.encrypt(plain, result_context(run.event.id, run.handler))
        return replace(ending, result=None, sealed_result=text, key_id=key)

    def call_back(self, failure: FailedAttempt) -> None:
        """Tell whoever wants to hear of failures; nothing that they do harms the run, which has ended."""
        share = failure_callbacks.TIMEOUT / len(failure_callbacks.callbacks)
        for callback in failure_callbacks.callbacks:
            try:
                with self.alarm.limit(share), ExitForkedChildren():
                    result = callback(failure)
                    if isinstance(result, Coroutine):
                        self._event_loop().run(result)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  the user's code
                log.warning("a callback of on_failure failed: %s", whereabouts(error))

    def _has_committed(self, run: ClaimedRun) -> bool:
        """Return whether a handler has committed its attempt by itself; the answer holds until the run is ended.

        So in the transaction that ends it the run is locked, if the attempt may be marked: what is still on its way
        then finds it ended. Raises `marks.Kept` where nothing ends what is on its way.
        """
        is_marked, self._is_marked, self._xact_id = self._is_marked, False, None
        self._has_to_unmark = is_marked and self._lock_run(run)
        return self._has_to_unmark

    def _lock_run(self, run: ClaimedRun) -> bool:
        """Lock a run in our transaction, which is begun; return whether its handler has committed it by itself."""
        marked = Marked.of(run.key)
        return marks.patiently(lambda: marks.ask(self._begun(), marked), self._rolled_back, [marked.key])

    def _rolled_back(self) -> psycopg.Connection:
        self._reset()
        return self.ledger

    def _end(
        self, run: ClaimedRun, ending: AttemptResult, *, has_next: bool = False, waits_for_flush: bool = True
    ) -> None:
        """End as done and commit; the next attempt's transaction is begun with it, if this one was plain."""
        ending = self._sealed(run, ending)
        transaction = self.begin()
        chain = self._is_plain() and has_next
        guard = self.guard
        driver = self.ledger
        try:
            ends.end(
                driver,
                run,
                ending,
                self._took(),
                chain=chain,
                xact_id=self._xact_id,
                is_session_ours=guard is None or guard.is_session_ours,
                asks_for_prepared=guard is not None and guard.may_have_prepared,
                waits_for_flush=waits_for_flush,
            )
        except psycopg.OperationalError as error:
            if driver.broken:
                raise EndCutOff(type(error).__name__) from error
            raise
        self._is_chained = chain
        if not chain:
            transaction.commit()

    def _is_plain(self) -> bool:
        """Return whether the next transaction may take over what kind of transaction this is."""
        return not self.connection.info.pop(TRANSACTION_CHANGED, False)

    def _report(self, run: ClaimedRun, ending: AttemptResult) -> None:
        """Tell of an attempt that has ended for good."""
        self.listener.ended(run, ending)
        self._log_run(run, ending)

    @staticmethod
    def _log_run(run: ClaimedRun, ending: AttemptResult) -> None:
        if log.isEnabledFor(logging.INFO):
            log.info("run", extra={**endings.names_of(run), "status": ending.status})

    def end_for_lost(self, run: ClaimedRun, handler: Handler, error: BaseException) -> None:
        """End, on our connection, an attempt in another thread that its time limit did not end.

        Under its token: whatever that thread does later finds the run no longer its own.
        """
        self._is_marked = True  # by what that thread is doing now, maybe
        ending = endings.failure(run, handler, str(error))
        ending = replace(ending, also=self.failure_rows.after_failure(handler, error))
        self._end_apart(run, ending, error)
        self.claims.settled([run])

    def hand_back(self, run: ClaimedRun) -> bool:
        """Give up, on our connection, a run that is under way in another thread: due at once, and not counted.

        Return whether it was under way. Raises what `attempt` raises.
        """
        ending = AttemptResult(RunStatus.WAITING, counted=False)
        self._is_marked = True  # the same
        try:
            if has_committed := self._has_committed(run):
                ending = AttemptResult(RunStatus.DEAD, error=endings.committed(None))
            self._fail(run, ending)
        except LeaseLost:
            self._reset()
            return False
        return not has_committed

    def give_back_cut_off(self, run: ClaimedRun, how: WorkerEnd) -> None:
        """Give back a run that was under way when the ledger went away, unless it was ended; again, it is a suspect.

        One that was alone is charged, by `how`. Raises what `attempt` raises.
        """
        is_suspect = self.claims.was_cut_off(run)
        charged = how if self._has_entered else None
        try:
            if takeover.settle(self.idle_ledger, run, charged, is_suspect=is_suspect):
                self.claims.note_cut_off(run)
        except Kept:
            self.leave([run])
        self.claims.settled([run])

    def close(self) -> None:
        """Close the connection and the event loop."""
        self.discard()
        if self._loop is not None:
            self._loop.close()
            self._loop = None
