"""The end of an attempt as it is written down: results, errors, tracebacks and lines; no SQL, no connection.

Where the inbox has keys, whatever quotes an event is sealed.
"""

import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hookonce.jobs.attempts.time_limit import TimeUp
from hookonce.jobs.attempts.transaction_guard import CommitRefused, OverlongBlock, RolledBack
from hookonce.jobs.event import BodyDropped, Postponed, QuotesNothing, Refusal
from hookonce.jobs.failures.error_summary import message_of, summarize, whereabouts
from hookonce.jobs.failures.issues import issue_of
from hookonce.jobs.failures.release import release
from hookonce.jobs.failures.traceback_capture import captured
from hookonce.jobs.handlers import GiveUp, Handler, pause
from hookonce.receiver.config.commands import COMMAND, REFUSAL
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.encryption import (
    CannotDecrypt,
    KeyMissing,
    body_context,
    log_context,
    result_context,
    traceback_context,
)
from hookonce.receiver.idempotency.records import StoreUnavailable
from hookonce.receiver.ledger.results import batch_as_json, is_skip, lines_as_json
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult, Waited
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from hookonce.receiver.logs import FINGERPRINT_DIGITS, digest, shown
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.monitoring.log_capture import Lines
from hookonce.receiver.privacy.masking import mask_secrets

log = logging.getLogger(__name__)

Verdict = GiveUp | Postponed | Refusal | BodyDropped | CannotDecrypt
"""Errors that decide what becomes of the run."""
OURS = (
    TimeUp,
    RolledBack,
    CommitRefused,
    OverlongBlock,
    Waited,
    QuotesNothing,
    CannotDecrypt,
    StoreUnavailable,
)
"""Errors whose text is ours, and quotes nothing of the event's."""
MAX_ERROR_LENGTH = 2000
LEDGER_LEFT = "the connection to the database ended in the middle of it"
KEY_MISSING_PAUSE = timedelta(seconds=30)
"""How long a run waits whose body can't be opened, for a key that is missing here."""
RETURNED_COROUTINE = (
    "the handler returned a coroutine that nobody awaits; decorate the `async def` itself with @on, or make what "
    "wraps it an `async def`"
)


class Unreadable(Exception):  # noqa: N818  what was found
    """Some events of a batch have no body that can be read; by the event's id, why."""

    def __init__(self, errors: Mapping[int, BodyDropped | CannotDecrypt]) -> None:
        super().__init__()
        self.errors = errors


class Sealing:
    """Seals what is kept of attempts by the keyring of the settings, if it has keys, and takes their secrets out.

    `release` is the release of the user's code, to which failures are counted.
    """

    def __init__(self, settings: Settings) -> None:
        self.keyring = settings.keyring
        self.release = release(settings.release)
        self._mask = mask_secrets(settings.secrets())
        self._keeps_locals = settings.keep_locals and self.keyring.is_on

    def require_key(self) -> None:
        """Raise `KeyMissing` where a handler's result could not be stored."""
        if self.keyring.is_on:
            self.keyring.encrypt(b"", ("test",))

    def opened(self, event: ClaimedEvent, text: bytes, key: str) -> bytes:
        """Return the body of an event, stored as `text` under a key. Raises `CannotDecrypt`."""
        return self.keyring.open(text, key, body_context(event.source, event.event_id, event.fingerprint))

    def results(
        self, runs: Sequence[ClaimedRun], results: Sequence[AttemptResult], lines: Lines | None
    ) -> Sequence[AttemptResult]:
        """Return results of handlers as they are stored: sealed where bodies are, with lines. Raises `KeyMissing`."""
        if self.keyring.is_on:
            results = [self._result(run, each) for run, each in zip(runs, results, strict=True)]
        return results if lines is None else self.logs(runs, results, lines)

    def _result(self, run: ClaimedRun, ending: AttemptResult) -> AttemptResult:
        if ending.result is None or is_skip(ending.result):
            return ending
        plain = json.dumps(ending.result).encode()
        text, key = self.keyring.encrypt(plain, result_context(run.event.id, run.handler))
        return replace(ending, result=None, sealed_result=text, key_id=key)

    def traceback(
        self, run: ClaimedRun, ending: AttemptResult, error: BaseException, *, is_alone: bool
    ) -> AttemptResult:
        """Add the traceback to a failure, and its issue; sealed it may show more, and the error's text besides.

        Variables of a batch hold values of all its events, of which each may be erased, or not be kept: `is_alone`.
        """
        if ending.error is None:
            return ending
        found = captured(
            error,
            with_details=self.keyring.is_on,
            with_locals=self._keeps_locals and is_alone and run.event.keep_body,
            cleaned=self._cleaned,
        )
        ending = replace(ending, issue=issue_of(run.handler, error, found, self.release))
        found = found or self._left_out(error)
        if found is None:
            return ending
        try:
            sealed, key = self.keyring.encrypt(
                found.as_json, traceback_context(run.event.id, run.handler, run.cycle, run.attempt)
            )
        except KeyMissing:  # what should be sealed must not be stored open
            return ending
        return replace(ending, traceback=sealed, key_id=key)

    def logs(
        self, runs: Sequence[ClaimedRun], endings: Sequence[AttemptResult], lines: Lines | None
    ) -> Sequence[AttemptResult]:
        """Add the lines that the handler wrote until now, masked; none of an event whose source keeps no bodies.

        Of a batch the first event, by number, keeps the lines, and each other which that is.
        """
        if lines is None:
            return endings
        log_capture.end()
        found, left_out = lines.taken(self._cleaned)
        if not found or not all(run.event.keep_body for run in runs):
            return endings
        first = min(run.event.id for run in runs)
        kept, same = lines_as_json(found, left_out), batch_as_json(first)
        try:
            sealed = [
                self.keyring.encrypt(
                    kept if run.event.id == first else same,
                    log_context(run.event.id, run.handler, run.cycle, run.attempt),
                )
                for run in runs
            ]
        except KeyMissing:
            return endings
        return [
            replace(ending, logs=text, logs_key=key)
            for ending, (text, key) in zip(endings, sealed, strict=True)
        ]

    def said(self, error: BaseException) -> str:
        """Return the text of an error that is kept in the clear: where things are sealed, its class and place."""
        if not self.keyring.is_on:
            if isinstance(error, Verdict):
                return message_of(error, cleaned=self._cleaned)
            return summarize(error, self._cleaned)
        return message_of(error, cleaned=self._cleaned) if isinstance(error, OURS) else whereabouts(error)

    def _cleaned(self, text: str) -> str:
        return storable_text(self._mask(text))

    def _left_out(self, error: BaseException) -> Traceback | None:
        """Return the text of an error, where that is not kept in the clear."""
        if not self.keyring.is_on or isinstance(error, OURS):
            return None
        return Traceback((Raised(summarize(error, self._cleaned)),))


def verdict(
    run: ClaimedRun, handler: Handler, error: Verdict, said: Callable[[BaseException], str]
) -> AttemptResult:
    """Return the end that an error decides on; `said` returns the text of an error that is kept."""
    if isinstance(error, Refusal) and run.event.provider == COMMAND:
        answer = {"status": error.status, "code": error.code, "detail": error.detail}
        return AttemptResult(RunStatus.DONE, storable({REFUSAL: answer}))
    if isinstance(error, Postponed):
        try:
            delay = pause(error.delay)
        except BaseException as odd:  # noqa: BLE001  a class of the handler's own, whose `delay` may be anything
            return failure(run, handler, said(odd))
        return AttemptResult(
            RunStatus.WAITING, delay=delay, counted=False, waits=error.waits, also=error.also
        )
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


def text(error: str) -> str:
    """Make an error fit its column."""
    return storable_text(error)[:MAX_ERROR_LENGTH]


def storable_text(text: str) -> str:
    """Make a text fit a text column."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def storable(result: object) -> object:
    """Return a handler's result as it can be stored: JSON, without what PostgreSQL's json refuses.

    Raises: TypeError for any other.
    """
    if result is None:
        return None
    if isinstance(result, Coroutine):
        result.close()
        raise TypeError(RETURNED_COROUTINE)
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
    """Return the fields of a log line that name an attempt."""
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
