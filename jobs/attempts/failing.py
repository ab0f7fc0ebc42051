"""Every bad end of an attempt: its handler fails, its lease is lost, its connection breaks, its slot is lost.

A run that fails is tried again, or dead, as its error says. A batch is taken apart: nobody is charged, and each half is
tried by itself (`receiver.ledger.runs.batches`), so only a run that is alone can use attempts up.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple, Protocol

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from hookonce.jobs.attempts import endings, failure_callbacks
from hookonce.jobs.attempts.attempt_connection import AttemptConnection, CutOff
from hookonce.jobs.attempts.endings import Unreadable, Verdict
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt, failure_of
from hookonce.jobs.attempts.ports import Attempt, Claimed
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.attempts.transaction_guard import RolledBack
from hookonce.jobs.event import BodyDropped, Postponed, ReceivedEvent
from hookonce.jobs.failures.error_summary import cause_of, context_of, suppresses_context, traceback_of
from hookonce.jobs.handlers import GiveUp, RetryLater
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.steps import LedgerAway
from hookonce.receiver.ledger.runs import batches, ends, failed_attempts, leases, takeover
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended, LeaseLost
from hookonce.receiver.ledger.runs.takeover import ConnectionLoss
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally

log = logging.getLogger(__name__)


class Host(Protocol):
    """The executor of an attempt, as far as a bad end needs it."""

    connection: AttemptConnection
    shared: Shared
    alarm: TimeLimit
    tell_failure: Callable[[FailedAttempt], None]

    def discard(self) -> None:
        """Close the connections."""

    def tell(self, attempt: Attempt) -> None:
        """Log and trace the end of an attempt, which is durable."""

    def tell_of_batch(
        self, attempt: Attempt, status: RunStatus, events: int, error: BaseException | None
    ) -> None:
        """Log and trace so many events of a batch that ended alike, by an error where it failed."""


CUT_OFF = "the ledger went away in the middle of a batch"
_errors_in = BaseExceptionGroup.__dict__["exceptions"].__get__


def fail(host: Host, attempt: Attempt, error: BaseException, rolled_back: str) -> None:
    """End an attempt that has failed, or whose lease is lost; `rolled_back`: the text for a rolled back transaction.

    Raises `CutOff` where its connection is gone: it is to be given back.
    """
    attempt.ticket = None  # of an end that was not reached
    error = _with_class(error)
    if isinstance(error, TimeUp):
        host.alarm.unset()
    elif _is_cut_off(host, error):
        raise CutOff(type(error).__name__) from error
    error = _readable(error, host.alarm, attempt.handler.timeout)
    kept: str | None = None
    if isinstance(error, TimeUp):
        error.args = host.alarm.time_up().args  # raised from outside it has none
        host.discard()  # the alarm may have cut a call into libpq: the connection is of no further use
        kept = str(error)
    else:
        host.connection.reset()
    if isinstance(error, LeaseLost):
        if not leases.are_ours(host.connection.begun, attempt.runs):
            _refuse(host, attempt, error)
            return
        error, kept = RolledBack(rolled_back), rolled_back
    end_failed(host, attempt, error, kept)


def end_failed(host: Host, attempt: Attempt, error: BaseException, kept: str | None = None) -> None:
    """End an attempt as failed, its writes being rolled back.

    `kept` is the text of the error that is kept, where that is not the error's own.
    """
    reach("failure.rolled_back")
    try:
        if attempt.is_batch:
            _fail_batch(host, attempt, error)
        else:
            _fail_run(host, attempt, error, kept)
    except psycopg.errors.LockNotAvailable:
        _leave(host, attempt.runs)
    except LeaseLost as lost:
        _refuse(host, attempt, lost)


def _is_cut_off(host: Host, error: BaseException) -> bool:
    """Return whether an attempt failed since a connection of ours went away, or was not to be had."""
    connection = host.connection
    connection.note_loss(connection.driver)
    if _is_for_want_of_a_step_s_connection(error):
        connection.is_lost = bool(connection.is_lost)
    return connection.is_lost is not None and not isinstance(error, Verdict)


def _is_for_want_of_a_step_s_connection(error: BaseException) -> bool:
    """Return whether an error, or what it came of, is that a step found no connection."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        if (each := left.pop()) is None or id(each) in seen:
            continue
        if issubclass(type(each), LedgerAway):
            return True
        seen.add(id(each))
        left += [cause_of(each), None if suppresses_context(each) else context_of(each)]
        left += _errors_in(each) if issubclass(type(each), BaseExceptionGroup) else ()
    return False


def _with_class(error: BaseException) -> BaseException:
    """Return an error, or one of ours in its place where `isinstance` can't read its class."""
    try:
        isinstance(error, TimeUp)
    except BaseException:  # noqa: BLE001  a class of the handler's own, which raises anything
        odd = RuntimeError(f"{type(error).__name__} has attributes that can't be read")
        return odd.with_traceback(traceback_of(error))
    return error


def _readable(error: BaseException, alarm: TimeLimit, timeout: timedelta) -> BaseException:
    """Return an error whose text can be had within the handler's time, or else `TimeUp` in its place."""
    try:
        alarm.start(timeout)
        str(error)
    except TimeUp:
        return TimeUp()  # another, which has the error that takes no end in its context
    except BaseException:  # noqa: BLE001, S110  whoever reads it next notes that
        pass
    finally:
        alarm.unset()
    return error


def _refuse(host: Host, attempt: Attempt, lost: LeaseLost) -> None:
    """Log, and count for each source, that an attempt could not be ended, since its lease is somebody else's.

    The line names the first event of a batch. Runs of it that are still under our token come back with its lease's
    end.
    """
    runs, names = attempt.runs, endings.names_of(attempt.run)
    if len(runs) > 1:
        host.shared.claims.drop([runs[0].token])
        names["events"] = len(runs)
    log.warning("lease lost: %s", lost, extra=names)
    host.discard()  # whatever its handler has left there: no end has taken it out
    try:
        sources = {run.event.source for run in runs}
        counters.add(host.connection.begun, {Tally(Kind.REFUSED, source): 1 for source in sources})
        host.connection.begin().commit()
    except (psycopg.Error, SQLAlchemyError) as error:  # it is only a count
        log.debug("a lost lease was not counted: %s", type(error).__name__)
        host.connection.reset()


def _fail_run(host: Host, attempt: Attempt, error: BaseException, kept: str | None) -> None:
    """End a run as its error says: tried again, or dead. Raises `LeaseLost`."""
    sealing, rows, handler, (run,) = (
        host.shared.sealing,
        host.shared.failure_streaks,
        attempt.handler,
        attempt.runs,
    )
    if isinstance(error, Verdict):
        ending = endings.verdict(run, handler, error, sealing.said)
    else:
        ending = endings.failure(run, handler, sealing.said(error) if kept is None else kept)
        ending = replace(ending, also=rows.after_failure(handler, error))
        if run.is_trial and ending.also is not None:
            ending = endings.of_trial(run, handler, ending)
    (ending,) = sealing.logs(
        attempt.runs, [sealing.traceback(run, ending, error, is_alone=True)], attempt.lines
    )
    status: RunStatus = ending.status
    if status is RunStatus.DONE:  # a refused command
        results = sealing.results(attempt.runs, [ending], None)
        host.connection.end(Ended(attempt.runs, results, attempt.took()))
    else:
        status = _write_failure(host, attempt, ending)
    reach("failure.committed")
    host.connection.clean()
    rows.say_if_opened(ending.also)
    attempt.results = [replace(ending, status=status)]
    host.tell(attempt)
    if ending.error is not None and failure_callbacks.callbacks:
        host.tell_failure(failure_of(run, error, is_dead=status == RunStatus.DEAD))


def _write_failure(host: Host, attempt: Attempt, ending: AttemptResult) -> RunStatus:
    """Write the end of a run that did not succeed, and commit; return what the run is now. Raises `LeaseLost`."""
    connection = host.connection
    transaction, ledger = connection.in_transaction()
    found = failed_attempts.fail(ledger, attempt.runs, [ending], attempt.took())
    if not found:
        raise ends.lost(attempt.runs)
    if ending.also is not None:
        ending.also(ledger)
    connection.take_out()
    reach("failure.ended")
    transaction.commit()
    (status,) = found.values()
    return status


class _Outcome(NamedTuple):
    """The fate of a batch that did not succeed; see `batches.take_apart`."""

    parts: Sequence[Sequence[int]] = ()
    verdicts: Mapping[int, tuple[AttemptResult, BaseException]] = {}
    delay: timedelta = timedelta(0)
    error: str | None = None


def _fail_batch(host: Host, attempt: Attempt, error: BaseException) -> None:
    """Take a batch apart, unless its error decides what becomes of which event. Raises `LeaseLost`."""
    sealing = host.shared.sealing
    host.connection.reset()
    host.discard()  # what a rollback leaves in the session
    outcome = _outcome(host.shared, attempt, error)
    is_ours = batches.take_apart(
        host.connection.idle_ledger,
        attempt.runs,
        outcome.parts,
        verdicts={event: ending for event, (ending, _) in outcome.verdicts.items()},
        delay=outcome.delay,
        error=outcome.error,
        logged=lambda results: sealing.logs(attempt.runs, results, attempt.lines),
    )
    if not is_ours:
        raise ends.lost(attempt.runs)
    reach("failure.committed")
    ended = [
        (run, *outcome.verdicts[run.event.id]) for run in attempt.runs if run.event.id in outcome.verdicts
    ]
    for run, ending, _ in ended:
        host.shared.tally.add(ending.status)
        log.info("run", extra={**endings.names_of(run), "status": ending.status})
    left = len(attempt.runs) - len(ended)
    status = RunStatus.WAITING if left else RunStatus.DEAD
    host.tell_of_batch(attempt, status, left, error if outcome.error else None)
    for run, ending, of_run in ended if failure_callbacks.callbacks else ():
        if ending.error is not None:
            host.tell_failure(failure_of(run, of_run, is_dead=ending.status == RunStatus.DEAD))


def _outcome(shared: Shared, attempt: Attempt, error: BaseException) -> _Outcome:
    """Return what becomes of a batch by the error of its handler: of some of its events, or of all alike."""
    sealing, handler, events = shared.sealing, attempt.handler, batches.events(attempt.runs)
    errors: dict[int, GiveUp | RetryLater | BodyDropped | CannotDecrypt] = {}
    if isinstance(error, Unreadable):
        errors |= error.errors
    elif isinstance(error, GiveUp | RetryLater):
        errors = dict.fromkeys(_named(error, events), error)
    if errors:
        verdicts: dict[int, tuple[AttemptResult, BaseException]] = {}
        for run in attempt.runs:
            if (of_run := errors.get(run.event.id)) is not None:
                ending = endings.verdict(run, handler, of_run, sealing.said)
                verdicts[run.event.id] = sealing.traceback(run, ending, of_run, is_alone=False), of_run
        rest = [event for event in events if event not in verdicts]
        return _Outcome(parts=[rest] if rest else [], verdicts=verdicts)
    if isinstance(error, Postponed) and getattr(error, "event", None) is None:
        ending = endings.verdict(attempt.run, handler, error, sealing.said)
        if not ending.counted:
            return _Outcome(delay=ending.delay)
    return _Outcome(parts=batches.halves(events), error=endings.text(sealing.said(error)))


def _named(error: GiveUp | RetryLater, events: Sequence[int]) -> list[int]:
    """Return the events of a batch that an error is about; none where it is about another, too."""
    about = [error.event] if isinstance(error.event, ReceivedEvent) else list(error.event or ())
    try:
        ids = {event.id for event in about}
    except AttributeError:  # it named something else
        return []
    return sorted(ids) if ids <= set(events) else []


def give_back(host: Host, claimed: Claimed, cut_off: ConnectionLoss | None) -> bool:
    """Give back what is under way, due at once and uncharged; return whether a run was, and had not ended.

    Where it was `cut_off`, a run is due as that decides, and a batch in halves.
    """
    ledger = host.connection.idle_ledger
    try:
        if len(claimed) == 1:
            return takeover.settle(ledger, claimed[0], cut_off) == RunStatus.WAITING
        parts = [] if cut_off is None else batches.halves(batches.events(claimed))
        error = None if cut_off is None else CUT_OFF
        batches.take_apart(ledger, claimed, parts, error=error)
    except psycopg.errors.LockNotAvailable:
        _leave(host, claimed)
    return False


def _leave(host: Host, runs: Claimed) -> None:
    """Leave runs in their claim that another transaction of the attempt keeps: a takeover will find it ended."""
    host.connection.reset()
    host.shared.claims.leave(runs)
    log.warning(
        "a transaction of an attempt is at its COMMIT still: its run stays as it is until that has ended",
        extra=endings.names_of(runs[0]),
    )
