"""Connections to PostgreSQL: their timeouts, and which database they reached.

`connect` gives psycopg in autocommit, every wait bounded, because a sender gives us a few seconds. SQLAlchemy's,
for handlers, are `receiver.ledger.database.engines`'.

A URL that ends in `?pgbouncer=true` leads through a pooler that gives every transaction another connection: then
nothing is prepared and no session is changed, and the timeouts are the pooler's to set (docs/explanation/scaling.md).
The settings that we rely on are ours in both cases (`receiver.ledger.database.pinned`).
"""

import hashlib
import select
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg

from hookonce.receiver.config.server_urls import is_pooled, libpq_url, schema_of
from hookonce.receiver.ledger.database import pinned, schema

LOCK_TIMEOUT = timedelta(milliseconds=700)
STATEMENT_TIMEOUT = timedelta(seconds=1.5)
CONNECT_TIMEOUT = timedelta(seconds=2)  # libpq takes no less

_PLANNED_ONCE = (
    " -c plan_cache_mode=force_generic_plan -c enable_seqscan=off"  # why: receiver.ledger.database.plans
)
_DATABASE_IDENTITY = """
SELECT control.system_identifier::text || '-' || database.oid || '-'
       || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
       ledger.id::text || ' ' || events.oid || ' ' || events.relfilenode || ' ' || pg_postmaster_start_time()
       || ' ' || coalesce(pg_stat_get_bgwriter_stat_reset_time()::text, ''),
       ledger.window_key
FROM pg_control_system() AS control, pg_database AS database, hookonce.ledger, pg_class AS events
WHERE database.datname = current_database() AND events.oid = 'hookonce.events'::regclass
"""


_NO_SETTINGS = "unsupported startup parameter"
_END_AS_POOLED = "a pooler in transaction mode needs ?pgbouncer=true at the end of DATABASE_URL"
_RENEW_WINDOW_KEY = "UPDATE hookonce.ledger SET window_key = DEFAULT"


class Place(NamedTuple):
    """Which ledger a connection commits to, and the key of its marks in the dedup window."""

    name: str
    window_key: bytes


class LedgerUnavailable(Exception):  # noqa: N818  a state of the world, answered with 503
    """PostgreSQL can't be reached, or not in time; the sender must try again."""


def connect(
    url: str,
    *,
    lock: timedelta = LOCK_TIMEOUT,
    statement: timedelta = STATEMENT_TIMEOUT,
    is_planned_once: bool = False,
    name: str = "hookonce receiver",
) -> psycopg.Connection:
    """Open a connection in autocommit mode whose every wait is bounded.

    `is_planned_once`: for a few statements again and again, each of which has its indexes.
    Raises `LedgerUnavailable`; its text names the host and never the password.
    """
    options = (
        f"-c lock_timeout={_ms(lock)} -c statement_timeout={_ms(statement)}"
        " -c idle_in_transaction_session_timeout=5000"
        " -c jit=off"  # it is for reports of minutes: a list that ends after fifty rows waits longer for the compiler
        f"{_PLANNED_ONCE if is_planned_once else ''}"
    )
    try:
        connection = pinned.PinnedConnection.connect(
            libpq_url(url),
            autocommit=True,
            connect_timeout=int(CONNECT_TIMEOUT.total_seconds()),
            application_name=name,
            **session(url, options),
            **KEEPALIVE,
        )
    except psycopg.OperationalError as error:
        said = _first_line(error)
        advice = _END_AS_POOLED if _NO_SETTINGS in said else "is it up, and is DATABASE_URL right?"
        raise LedgerUnavailable(f"PostgreSQL does not answer: {said}; {advice}") from None
    use(connection, url)
    return connection


def use(connection: psycopg.Connection[Any], url: str) -> None:
    """Have the statements of a connection to `url` name the ledger's schema, under the settings that they rely on."""
    schema.use(connection, schema_of(url))
    if is_pooled(url):
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED


def is_stale(connection: psycopg.Connection[Any]) -> bool:
    """Return whether a connection that lay idle is of no further use: its socket has something to read.

    What a session says unasked is that it ends (a server that restarts or fails over, a proxy that cuts what is idle),
    or else a NOTIFY or that a setting has changed: then it is given up for nothing, which costs a reconnect. It asks
    the kernel and not the server, a microsecond. A machine that went without a word is not noticed.
    """
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def session(url: str, ours: str = "") -> dict[str, Any]:
    """Add our session settings to those of the URL (a search path, a hosted service's endpoint)."""
    encoding = {"client_encoding": pinned.SETTINGS["client_encoding"]}
    if is_pooled(url):
        return {"prepare_threshold": None, **encoding}
    theirs = psycopg.conninfo.conninfo_to_dict(libpq_url(url)).get("options") or ""
    return {"options": f"{theirs} {ours} {pinned.OPTIONS}".strip(), **encoding}


def place_of(connection: psycopg.Connection) -> Place | None:
    """Name the ledger behind a connection: two connections that name the same see the same commits.

    It holds the server's system identifier, the database's oid and the timeline; and, as a digest, the ledger's own
    id, oid and file of `events` (another ledger of this database, a `pg_restore --clean`, a TRUNCATE), when the
    server started (two restores of one backup get the same timeline) and when its statistics were reset, as they are
    after a backend crashed: that loses the last commits where `synchronous_commit` is off. None where the server does
    not tell (a standby, or a hosted service that forbids the functions): then nothing may be taken on trust.
    """
    try:
        row = connection.execute(_DATABASE_IDENTITY).fetchone()
    except psycopg.Error:
        if connection.closed:
            raise
        return None
    if row is None:
        return None
    digest = hashlib.sha256(row[1].encode()).hexdigest()[:12]
    return Place(f"{row[0]}-{digest}", bytes(row[2]))


def database_identity(connection: psycopg.Connection) -> str | None:
    """Return the name of the place behind a connection (`place_of`)."""
    place = place_of(connection)
    return place.name if place else None


def renew_window_key(connection: psycopg.Connection) -> None:
    """Have the ledger believe no mark in the dedup window that was made before.

    A receiver learns of it within the 100 ms for which it trusts what it knows of its place.
    """
    connection.execute(_RENEW_WINDOW_KEY)


KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


def _ms(span: timedelta) -> int:
    return int(span / timedelta(milliseconds=1))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def set_lock_timeout(connection: psycopg.Connection, span: timedelta) -> None:
    """Change how long this connection's statements wait for a lock; a pooled one is somebody else's next time."""
    if connection.prepare_threshold is None:
        return
    connection.execute(f"SET lock_timeout = {_ms(span)}".encode())
