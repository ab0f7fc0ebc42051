"""Connections to PostgreSQL: their timeouts, and which database they reached.

`connect` gives psycopg in autocommit, every wait bounded, because a sender gives us a few seconds. SQLAlchemy's,
for handlers and migrations, are `receiver.engines`'.

A URL that ends in `?pgbouncer=true` leads through a pooler that gives every transaction another connection: then
nothing is prepared and no session is changed, and the timeouts are the pooler's to set (docs/scaling.md).
"""

from datetime import timedelta
from typing import Any

import psycopg

LOCK_TIMEOUT = timedelta(milliseconds=700)
STATEMENT_TIMEOUT = timedelta(seconds=1.5)
CONNECT_TIMEOUT = timedelta(seconds=2)  # libpq takes no less

_POOLED = "pgbouncer=true"
_OURS = r"-c timezone=UTC -c default_transaction_isolation=read\ committed"  # whatever the server's own defaults are
_WHERE_AM_I = """
SELECT system_identifier::text || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
       || '-' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
FROM pg_control_system()
"""


class LedgerUnavailable(Exception):  # noqa: N818  a state of the world, answered with 503
    """PostgreSQL can't be reached, or not in time; the sender must try again."""


def libpq_url(url: str) -> str:
    """Bring the spellings of a PostgreSQL URL (Heroku's, SQLAlchemy's) to the one libpq reads."""
    scheme, separator, rest = url.partition("://")
    if scheme == "postgres" or scheme.startswith("postgresql+"):
        scheme = "postgresql"
    path, mark, query = rest.partition("?")
    if mark:
        rest = path + mark + "&".join(pair for pair in query.split("&") if pair != _POOLED)
    return scheme + separator + rest.removesuffix("?")


def is_pooled(url: str) -> bool:
    """Tell whether a URL says that it leads through PgBouncer, or the like, in transaction mode."""
    return _POOLED in url.partition("?")[2].split("&")


def connect(
    url: str, *, lock: timedelta = LOCK_TIMEOUT, statement: timedelta = STATEMENT_TIMEOUT
) -> psycopg.Connection:
    """Open a connection in autocommit mode whose every wait is bounded.

    Raises `LedgerUnavailable`; its text names the host and never the password.
    """
    options = (
        f"-c lock_timeout={_ms(lock)} -c statement_timeout={_ms(statement)}"
        " -c idle_in_transaction_session_timeout=5000"
    )
    try:
        return psycopg.connect(
            libpq_url(url),
            autocommit=True,
            connect_timeout=int(CONNECT_TIMEOUT.total_seconds()),
            application_name="hookonce receiver",
            **session(url, options),
            **KEEPALIVE,
        )
    except psycopg.OperationalError as error:
        raise LedgerUnavailable(f"PostgreSQL does not answer: {_first_line(error)}") from None


def session(url: str, ours: str = "") -> dict[str, Any]:
    """Add our session settings to those of the URL (a search path, a hosted service's endpoint)."""
    if is_pooled(url):
        return {"prepare_threshold": None}
    theirs = psycopg.conninfo.conninfo_to_dict(libpq_url(url)).get("options") or ""
    return {"options": f"{theirs} {ours} {_OURS}".strip()}


def where_am_i(connection: psycopg.Connection) -> str | None:
    """Name the database behind a connection: system identifier, database oid and timeline.

    Two connections that say the same see the same commits. None where the server does not tell
    (a standby, or a hosted service that forbids the functions): then nothing may be taken on trust.
    """
    try:
        row = connection.execute(_WHERE_AM_I).fetchone()
    except psycopg.Error:
        if connection.closed:
            raise
        return None
    return str(row[0]) if row else None


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
