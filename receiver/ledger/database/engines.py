"""SQLAlchemy over psycopg: for handlers, the command line's migrations, and nothing that takes deliveries in.

Apart from `connections`, since importing SQLAlchemy costs every process memory and every command time.
"""

from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.event import listen
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.ledger.database.connections import KEEPALIVE, LedgerUnavailable, is_stale, session, use
from hookonce.receiver.ledger.database.round_trip import PreparingConnection
from hookonce.receiver.ledger.database.session_reset import SessionReset

AWAY = (psycopg.Error, SQLAlchemyError, LedgerUnavailable)
"""Errors that an absent ledger raises."""

# A backend whose client is gone ends its query and lets go of its locks, which the next attempt may need; whose
# machine is gone, within a minute or so. A handler may do other things for as long as any may take.
_SETTINGS = (
    "-c client_connection_check_interval=500 -c idle_in_transaction_session_timeout=2h"
    " -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)


def engine(url: str, *, name: str = "hookonce", **options: Any) -> Engine:  # noqa: ANN401  SQLAlchemy's own options
    """Make a SQLAlchemy engine over psycopg for handlers and the command line (READ COMMITTED, UTC)."""
    dsn = libpq_url(url)

    def opened() -> psycopg.Connection:
        connection = PreparingConnection.connect(
            dsn, connect_timeout=5, application_name=name, **session(url, _SETTINGS), **KEEPALIVE
        )
        use(connection, url)
        return connection

    made = create_engine("postgresql+psycopg://", creator=opened, **options)
    listen(made, "connect", _keep_settings, insert=True)  # before SQLAlchemy's own, which rolls back
    listen(made, "checkout", _require_fresh)
    return made


def _keep_settings(connection: PreparingConnection, *_: object) -> None:
    """Keep what a pooler, or a listener of the user's to all pools, has set in a session that was opened just now.

    Such a listener is called before this one, and may have begun a transaction by what it sent.
    """
    connection.commit()
    connection.autocommit = True
    connection.reset = SessionReset.of(connection, has_settings=True)
    connection.autocommit = False


def _require_fresh(connection: psycopg.Connection[Any], *_: object) -> None:
    """Have the pool open another connection in the place of one that ended while it lay there."""
    if is_stale(connection):
        raise DisconnectionError("the server has ended this connection")


def raw(connection: Connection) -> psycopg.Connection[Any]:
    """Return the psycopg connection under a SQLAlchemy one."""
    # The property of the class itself: a handler's connection counts it as given out when it is asked.
    driver = Connection.connection.__get__(connection).driver_connection
    if not isinstance(driver, psycopg.Connection):
        raise TypeError("this engine was not made by hookonce.receiver.ledger.database.engines")
    return driver
