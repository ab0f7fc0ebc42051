"""The bearer tokens of the admin API: 32 random bytes each, of which the ledger keeps the SHA-256 only.

A plain hash is enough, since nobody guesses 256 random bits: a slow one would only make every request slow.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as

_TOKEN = re.compile(r"hko_[A-Za-z0-9_-]{43}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")

_CREATE = """
INSERT INTO hookonce.api_tokens (name, hash, scopes, expires_at) VALUES (%s, %s, %s, now() + %s)
ON CONFLICT (name) DO NOTHING RETURNING id
"""
_COLUMNS = "id, name, scopes, created_at, expires_at, coalesce(expires_at <= now(), false) AS is_expired"
_ALL = f"SELECT {_COLUMNS} FROM hookonce.api_tokens ORDER BY name"  # noqa: S608  a constant of this module
_FIND = f"SELECT {_COLUMNS}, hash FROM hookonce.api_tokens WHERE hash = %s"  # noqa: S608  same
_REVOKE = "DELETE FROM hookonce.api_tokens WHERE name = %s RETURNING id"
_FORGET = "DELETE FROM hookonce.idempotency WHERE scope = %s"


class Scope(StrEnum):
    """The scope of a token; `admin` includes the others, which do not include each other.

    With `bodies` content is shown (`receiver.desk.content`): what deliveries, errors, results and logs say.
    """

    READ = "read"
    BODIES = "bodies"
    REPLAY = "replay"
    ADMIN = "admin"


class Token(ResponseModel):
    """A token as the ledger knows it, without what proves it."""

    id: int
    name: Ours
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    is_expired: bool

    def allows(self, scope: Scope) -> bool:
        """Return whether the token is good for what needs this scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def create(
    connection: psycopg.Connection, name: str, scopes: Collection[Scope], lasts: timedelta | None, who: str
) -> str:
    """Make a token and give it: it is told this once. Audited.

    Raises: ValueError for a name that is taken, or is not a name.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for a token; expected up to 63 of A-Z a-z 0-9 . _ @ -")
    token = "hko_" + secrets.token_urlsafe(32)
    wanted = [scope.value for scope in Scope if scope in scopes]
    with connection.transaction():
        if connection.execute(_CREATE, [name, _hash(token), wanted, lasts]).fetchone() is None:
            raise ValueError(f"there is a token '{name}' already; revoke it, or choose another name")
        audit_log.note(connection, who, "create token", f"token {name}")
    return token


def digest(presented: str) -> bytes | None:
    """Return the SHA-256 that a token is found by; None for what cannot be a token."""
    return _hash(presented) if _TOKEN.fullmatch(presented) else None


def find(connection: psycopg.Connection, digest: bytes) -> Token | None:
    """Return what the ledger knows of a token that was presented; None unless it knows it and it has not expired."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(_FIND, [digest]).fetchone()
    if row is None or row["is_expired"] or not hmac.compare_digest(row["hash"], digest):
        return None
    return Token.model_validate(row)


def listing(connection: psycopg.Connection) -> list[Token]:
    """Return the tokens, expired ones too, by name."""
    return all_as(Token, connection, _ALL)


def revoke(connection: psycopg.Connection, name: str, who: str) -> bool:
    """Make a token worthless from now on; return whether there was one. Audited."""
    with connection.transaction():
        row = connection.execute(_REVOKE, [name]).fetchone()
        if row is not None:
            connection.execute(_FORGET, [str(row[0])])
            audit_log.note(connection, who, "revoke token", f"token {name}")
    return row is not None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
