"""Records of the steps of one run, in the ledger beside it: the same machine, and the run's token for a lease.

    hookonce.steps (event, handler, name)   one row per step; see `receiver.ledger.database.tables`

A claim holds the run's row of the queue while it is written, so that it is granted only to the attempt that has the
run; a step that another attempt has begun and not ended was cut off then, and may be taken over at once. An attempt
that has lost its run is fenced twice: it gets no claim, and it can't end one that was taken over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import psycopg

from hookonce.receiver.encryption import Keyring, step_context
from hookonce.receiver.idempotency.postgresql import Connections
from hookonce.receiver.idempotency.records import (
    Claim,
    Key,
    LeaseLost,
    Record,
    Result,
    State,
    StoreUnavailable,
    Terms,
)
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

FINGERPRINT = b""
"""Of every step: event, handler and name say which it is, and nothing else is asked of it."""
TERMS = Terms()
"""A step keeps others away as long as its run does, and is kept as long as its event."""
MAX_RESULT = 1024 * 1024
KEPT: Final = timedelta(days=1)

# A step whose function raised is as uncertain as one that was cut off: a call that timed out may have been heard.
_MINE = "(s.state = 'in_progress' AND s.owner = excluded.owner)"
_CLAIM = f"""
WITH mine AS (
    SELECT event, handler FROM hookonce.queue
    WHERE event = %(event)s AND n = %(n)s AND token = %(token)s AND handler = %(handler)s FOR SHARE
)
INSERT INTO hookonce.steps AS s (event, handler, name, state, owner)
SELECT event, handler, %(name)s, 'in_progress', %(owner)s FROM mine
ON CONFLICT (event, handler, name) DO UPDATE
SET state = excluded.state, owner = excluded.owner, started_at = excluded.started_at, finished_at = NULL, note = NULL,
    attempt = CASE WHEN {_MINE} THEN s.attempt ELSE s.attempt + 1 END,
    is_uncertain = CASE WHEN {_MINE} THEN s.is_uncertain ELSE true END
WHERE s.state IN ('in_progress', 'failed_retryable')
RETURNING attempt, is_uncertain
"""  # noqa: S608  constants of this module
_FIND = """
SELECT state, owner, attempt, is_uncertain, result, key_id FROM hookonce.steps
WHERE event = %(event)s AND handler = %(handler)s AND name = %(name)s
"""
_COMPLETE = """
UPDATE hookonce.steps
SET state = %(state)s, finished_at = statement_timestamp(), note = %(note)s, result = %(result)s, key_id = %(key_id)s
WHERE event = %(event)s AND handler = %(handler)s AND name = %(name)s
      AND owner = %(owner)s AND state = 'in_progress'
"""
_RELEASE = """
DELETE FROM hookonce.steps
WHERE event = %(event)s AND handler = %(handler)s AND name = %(name)s
      AND owner = %(owner)s AND state = 'in_progress'
"""


class LedgerAway(StoreUnavailable):
    """The connection that a step is written on was not to be had, or went away: no doing of its handler's."""


class StepStore:
    """The steps of one attempt's run, each named by its key; on connections in autocommit mode."""

    loses = ""
    max_result = MAX_RESULT

    def __init__(self, connect: Connections, run: ClaimedRun, keyring: Keyring) -> None:
        self._connect = connect
        self._run = run
        self._keyring = keyring

    def claim(self, wanted: Claim) -> Claim | Record | None:
        """Claim a step, if the attempt still has the run; see `Store`.

        Raises: `LeaseLost` if it has not; `KeyMissing` where the result could not be sealed.
        """
        self._keyring.encrypt(b"", ("test",))
        values = self._named(wanted.key) | {"owner": wanted.owner, "n": self._run.n, "token": self._run.token}
        with self._asking(wanted.key) as connection:
            row = connection.execute(_CLAIM, values).fetchone()
            if row is None:
                found = self._found(connection, wanted.key)
                if found is None or found.state in {State.IN_PROGRESS, State.FAILED_RETRYABLE}:
                    raise LeaseLost("another attempt has this run, or none")
                return found
        return Claim(wanted.key, wanted.fingerprint, wanted.owner, wanted.terms, *row)

    def complete(self, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim; see `Store`. A result that is not kept has its reason in its body."""
        text, key, note = None, None, None
        if result is not None and result.is_kept:
            text, key = self._keyring.encrypt(result.body, self._context(claim.key))
        elif result is not None:
            note = result.body.decode()
        values = {"owner": claim.owner, "state": state, "result": text, "key_id": key, "note": note}
        with self._asking(claim.key) as connection:
            if connection.execute(_COMPLETE, self._named(claim.key) | values).rowcount:
                return
            found = self._found(connection, claim.key)
        if found is None or (found.owner, found.state) != (claim.owner, state):
            raise LeaseLost("another attempt has taken the step over, or a person has decided about it")

    def release(self, claim: Claim) -> None:
        """Forget a claim; see `Store`."""
        with self._asking(claim.key) as connection:
            connection.execute(_RELEASE, self._named(claim.key) | {"owner": claim.owner})

    def find(self, key: Key) -> Record | None:
        """Return the record; see `Store`."""
        with self._asking(key) as connection:
            return self._found(connection, key)

    def _found(self, connection: psycopg.Connection, key: Key) -> Record | None:
        row = connection.execute(_FIND, self._named(key)).fetchone()
        if row is None:
            return None
        state, owner, attempt, is_uncertain, text, key_id = row
        body = None if text is None else self._keyring.open(text, key_id, self._context(key))
        result = None if state not in {State.COMPLETED, State.FAILED_FINAL} else Result(0, {}, body or b"")
        return Record(FINGERPRINT, State(state), owner, attempt, is_uncertain, timedelta(0), KEPT, result)

    def _named(self, key: Key) -> dict[str, Any]:
        return {"event": self._run.event.id, "handler": self._run.handler, "name": key.key}

    def _context(self, key: Key) -> tuple[str | bytes, ...]:
        return step_context(self._run.event.id, self._run.handler, key.key)

    @contextmanager
    def _asking(self, key: Key) -> Iterator[psycopg.Connection]:
        try:
            with self._connect() as connection:
                yield connection
        except psycopg.errors.LockNotAvailable:
            raise StoreUnavailable(
                f"the step '{key.key}' can't be written: somebody holds a lock on the ledger's rows of event "
                f"{self._run.event.id}, maybe this handler's own transaction; lock nothing of the ledger's there"
            ) from None
        except (psycopg.OperationalError, LedgerUnavailable) as error:
            raise LedgerAway(
                f"the step '{key.key}' can't be written: PostgreSQL does not answer, or not in time "
                f"({type(error).__name__})"
            ) from error
