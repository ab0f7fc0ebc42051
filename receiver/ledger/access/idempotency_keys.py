"""Requests that are answered once: what a client asked for under an Idempotency-Key, and what it was told.

A claim is committed before the work begins, so that a second request sees it. The result is written in the
transaction of the work itself: an entry without one means that nothing has happened yet, and may be taken over
when its process seems to be gone. Should that process live after all, its result finds no claim and rolls back.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg

RESULT_TTL = timedelta(hours=24)
ABANDONED_AFTER = timedelta(minutes=1)
"""How long a claim without a result keeps others away."""
SWEEP_BATCH = 100
"""Expired entries that go whenever one is made: more than come, so what expired never piles up."""

# No row: the key is taken, by a result or by a request that is under way.
_CLAIM = """
INSERT INTO hookonce.idempotency AS i (token, key, fingerprint) VALUES (%(token)s, %(key)s, %(fingerprint)s)
ON CONFLICT (token, key) DO UPDATE
SET fingerprint = excluded.fingerprint, started_at = excluded.started_at, status = NULL, headers = NULL, body = NULL
WHERE i.started_at < now() - %(kept)s
      OR i.status IS NULL AND i.fingerprint = excluded.fingerprint AND i.started_at < now() - %(abandoned)s
RETURNING started_at
"""
_TAKEN = "SELECT fingerprint, status, headers, body FROM hookonce.idempotency WHERE token = %s AND key = %s"
_FINISH = """
UPDATE hookonce.idempotency SET status = %s, headers = %s::json, body = %s
WHERE token = %s AND key = %s AND started_at = %s AND status IS NULL RETURNING key
"""
_ABANDON = (
    "DELETE FROM hookonce.idempotency WHERE token = %s AND key = %s AND started_at = %s AND status IS NULL"
)
_SWEEP = """
DELETE FROM hookonce.idempotency WHERE (token, key) IN (
    SELECT token, key FROM hookonce.idempotency WHERE started_at < now() - %s
    ORDER BY started_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""


class KeyReused(Exception):  # noqa: N818  what the client did
    """The key belongs to another request."""


class InProgress(Exception):  # noqa: N818  a state of the request
    """The same request is under way, or its process has died less than `ABANDONED_AFTER` ago."""


class TakenOver(Exception):  # noqa: N818  a state of the claim
    """Another process has this claim now; what was done under it must be rolled back."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to do the work of a key, and to store its result."""

    token: str
    key: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Result:
    """An answer as it was given."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def begin(connection: psycopg.Connection, token: str, key: str, fingerprint: bytes) -> Claim | Result:
    """Claim a key of a token for the request with this fingerprint (SHA-256), or give the result it had.

    Committed when it returns. Raises: `KeyReused`, `InProgress`.
    """
    connection.execute(_SWEEP, [RESULT_TTL, SWEEP_BATCH])
    wanted = {
        "token": token,
        "key": key,
        "fingerprint": fingerprint,
        "kept": RESULT_TTL,
        "abandoned": ABANDONED_AFTER,
    }
    claimed = connection.execute(_CLAIM, wanted).fetchone()
    if claimed is not None:
        return Claim(token, key, claimed[0])
    taken = connection.execute(_TAKEN, [token, key]).fetchone()
    if taken is None:  # given up in this very moment
        raise InProgress
    other, status, headers, body = taken
    if other != fingerprint:
        raise KeyReused
    if status is None:
        raise InProgress
    return Result(status, headers, body)


def finish(connection: psycopg.Connection, claim: Claim, result: Result) -> None:
    """Store the result of a claim, in the transaction of the work. Raises: `TakenOver`."""
    values = [result.status, json.dumps(dict(result.headers)), result.body]
    stored = connection.execute(_FINISH, [*values, claim.token, claim.key, claim.started_at])
    if stored.fetchone() is None:
        raise TakenOver


def abandon(connection: psycopg.Connection, claim: Claim) -> None:
    """Give a claim back after work that failed, so that the key may be used again at once."""
    connection.execute(_ABANDON, [claim.token, claim.key, claim.started_at])
