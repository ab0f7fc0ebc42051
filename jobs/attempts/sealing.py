"""What is kept of events and errors in the clear, and what is sealed; no SQL, no connection."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from hookonce.jobs.attempts import endings
from hookonce.jobs.attempts.time_limit import TimeUp
from hookonce.jobs.attempts.transaction_guard import OverlongBlock, RolledBack
from hookonce.jobs.event import BodyDropped, StepError
from hookonce.jobs.failures.error_summary import message_of, summarize, whereabouts
from hookonce.jobs.failures.issues import issue_of
from hookonce.jobs.failures.traceback_capture import captured
from hookonce.jobs.steps import StepStopped
from hookonce.receiver.encryption import (
    OFF,
    CannotDecrypt,
    KeyMissing,
    Keyring,
    body_context,
    log_context,
    result_context,
    traceback_context,
)
from hookonce.receiver.idempotency.records import StoreUnavailable
from hookonce.receiver.ledger.results import batch_as_json, lines_as_json
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.monitoring.log_capture import Lines

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


class Sealing:
    """Seals by a keyring, if it has keys; `mask` takes secrets out of what is kept of errors and lines.

    `release` is the one of the user's code that failures are of.
    """

    def __init__(self, keyring: Keyring = OFF, mask: Callable[[str], str] = str, release: str = "") -> None:
        self.keyring = keyring
        self.release = release
        self._mask = mask

    def require_key(self) -> None:
        """Raise `KeyMissing` where what a handler returns could not be stored."""
        if self.keyring.is_on:
            self.keyring.encrypt(b"", ("test",))

    def opened(self, event: ClaimedEvent, text: bytes, key: str | None) -> bytes:
        """Return the body of an event, stored as `text` under a key. Raises `CannotDecrypt`."""
        if key is None:
            return text
        return self.keyring.open(text, key, body_context(event.source, event.event_id, event.fingerprint))

    def result(self, run: ClaimedRun, ending: AttemptResult) -> AttemptResult:
        """Seal what a handler returned, where bodies are sealed. Raises `KeyMissing`."""
        if ending.result is None or not self.keyring.is_on:
            return ending
        plain = json.dumps(ending.result).encode()
        text, key = self.keyring.encrypt(plain, result_context(run.event.id, run.handler))
        return replace(ending, result=None, sealed_result=text, key_id=key)

    def traceback(self, run: ClaimedRun, ending: AttemptResult, error: BaseException) -> AttemptResult:
        """Add the traceback to a failure, and its issue; sealed it may tell more, and what the error says besides."""
        if ending.error is None:
            return ending
        found = captured(error, with_details=self.keyring.is_on, cleaned=self._cleaned)
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
    ) -> list[AttemptResult]:
        """Add what the handler wrote until now, masked; nothing of an event whose source keeps no bodies.

        Of a batch the first event, by number, keeps the lines, and each other which that is.
        """
        if lines is None:
            return [*endings]
        log_capture.end()
        found, left_out = lines.taken(self._cleaned)
        if not found or not all(run.event.keep_body for run in runs):
            return [*endings]
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
            return [*endings]
        return [
            replace(ending, logs=text, logs_key=key)
            for ending, (text, key) in zip(endings, sealed, strict=True)
        ]

    def said(self, error: BaseException) -> str:
        """Return what is kept of an error in the clear: where things are sealed, its class and place."""
        if not self.keyring.is_on:
            if isinstance(error, endings.VERDICTS):
                return message_of(error, cleaned=self._cleaned)
            return summarize(error, self._cleaned)
        return message_of(error, cleaned=self._cleaned) if isinstance(error, OURS) else whereabouts(error)

    def _cleaned(self, text: str) -> str:
        return endings.storable_text(self._mask(text))

    def _left_out(self, error: BaseException) -> Traceback | None:
        """Return what an error says, where that is not said in the clear."""
        if not self.keyring.is_on or isinstance(error, OURS):
            return None
        return Traceback((Raised(summarize(error, self._cleaned)),))
