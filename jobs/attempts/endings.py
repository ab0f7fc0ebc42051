"""How an attempt ends, as it is written down: by what the handler returned or raised. No SQL, no connection."""

import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hookonce.jobs.attempts.transaction_guard import WAS_ROLLED_BACK
from hookonce.jobs.event import BodyDropped, Refusal
from hookonce.jobs.handlers import GiveUp, Handler, RetryLater, pause
from hookonce.receiver.config.commands import COMMAND, REFUSAL
from hookonce.receiver.encryption import CannotDecrypt, KeyMissing
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.runs.marks import COMMITTED
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.logs import FINGERPRINT_DIGITS, digest, shown

log = logging.getLogger(__name__)

VERDICTS = (GiveUp, RetryLater, Refusal, BodyDropped, CannotDecrypt)
"""Errors that say themselves what is to become of the run."""
MAX_ERROR_LENGTH = 2000
LEDGER_LEFT = "the connection to the database ended in the middle of it"
KEY_MISSING_PAUSE = timedelta(seconds=30)
"""How long a run waits whose body can't be opened, for a key that is missing here."""
RETURNED_COROUTINE = (
    "the handler returned a coroutine that nobody awaits; decorate the `async def` itself with @on, or make what "
    "wraps it an `async def`"
)


def verdict(
    run: ClaimedRun,
    handler: Handler,
    error: GiveUp | RetryLater | Refusal | BodyDropped | CannotDecrypt,
    said: Callable[[BaseException], str],
) -> AttemptResult:
    """Return the end of an attempt whose handler said how it is to end; `said` tells what is kept of an error."""
    if isinstance(error, Refusal) and run.event.provider == COMMAND:
        answer = {"status": error.status, "code": error.code, "detail": error.detail}
        return AttemptResult(RunStatus.DONE, storable({REFUSAL: answer}))
    if isinstance(error, RetryLater):
        try:
            return AttemptResult(RunStatus.WAITING, delay=pause(error.delay), counted=False)
        except Exception as odd:  # noqa: BLE001  a class of the handler's own, which may say anything
            return failure(run, handler, said(odd))
    if isinstance(error, KeyMissing):
        log.error("the body can't be read, the run waits: %s", error, extra={"event": run.event.id})
        return AttemptResult(RunStatus.WAITING, delay=KEY_MISSING_PAUSE, counted=False)
    return AttemptResult(RunStatus.DEAD, error=text(said(error)))


def failure(run: ClaimedRun, handler: Handler, error: str) -> AttemptResult:
    """Return the end of a failed attempt: tried again after a pause, or dead when no attempt is left."""
    return AttemptResult(
        RunStatus.WAITING, error=text(error), delay=handler.delay(run.attempt), most=handler.attempts
    )


def of_trial(run: ClaimedRun, handler: Handler, ending: AttemptResult) -> AttemptResult:
    """Return the end of a failed attempt that was made to see whether a breaker may close: it uses none up."""
    return replace(ending, status=RunStatus.WAITING, delay=handler.delay(run.attempt), counted=False)


def committed(error: str | None) -> str:
    """Return what is said of a handler that has committed, and then failed with `error`."""
    is_its_own = error and WAS_ROLLED_BACK not in error
    return text(f"{COMMITTED}; then it failed with {error}" if is_its_own else COMMITTED)


def text(error: str) -> str:
    """Make an error fit its column."""
    return storable_text(error)[:MAX_ERROR_LENGTH]


def storable_text(text: str) -> str:
    """Make a text fit a text column."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def storable(result: object) -> object:
    """Check that a handler's result can be stored: JSON, without what PostgreSQL's json refuses."""
    if isinstance(result, Coroutine):
        result.close()
        raise TypeError(RETURNED_COROUTINE)
    if result is None:
        return None
    try:
        encoded = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"a handler returns None or JSON; this result is neither: {error}") from None
    return json.loads(encoded)


def results(returned: object, count: int) -> Sequence[Any]:
    """Return the result of each run of a batch: its own from a list of so many, or what was returned for all of them.

    Raises: TypeError for what is neither None nor JSON.
    """
    if isinstance(returned, list | tuple) and len(returned) == count:
        return [storable(each) for each in returned]
    return [storable(returned)] * count


def names_of(run: ClaimedRun) -> dict[str, object]:
    """Return what tells which attempt a line is about."""
    event = run.event
    names = {
        "event": event.id,
        "source": event.source,
        "type": event.type,
        "handler": run.handler,
        "cycle": run.cycle,
        "attempt": run.attempt,
        "fingerprint": event.fingerprint.hex()[:FINGERPRINT_DIGITS],
        "token": digest(run.token.bytes),
    }
    if event.account:
        names["account"] = shown(event.account)
    if event.traceparent:
        names["trace"] = event.traceparent[3:35]  # version-TRACE-span-flags
    return names
