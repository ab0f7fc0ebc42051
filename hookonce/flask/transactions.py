"""Transactions of handlers inside an application's context, with `db.session` of Flask-SQLAlchemy bound to them.

A session's default bind is the run's transaction as long as its handler runs; what has a `bind_key` of its own goes
where that leads, and commits by itself. A commit of the session releases a savepoint; what is left in it is committed
with the run.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask
from sqlalchemy import Connection, Engine, text

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.handler_transaction import HandlerTransactions
from hookonce.jobs.attempts.orm_session import told_of_the_end
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.database import connections

_EXTENSION = "sqlalchemy"
"""The name that Flask-SQLAlchemy has among an application's extensions."""
_LOCK = "SELECT pg_advisory_xact_lock(%s)"
_TRY = text("SELECT pg_try_advisory_xact_lock(:key)")


class FlaskTransactions(HandlerTransactions):
    """The transactions of one executor, each inside a context of the application."""

    def __init__(self, connection: AttemptConnection, app: Flask) -> None:
        super().__init__(connection)
        self._app = app

    @contextmanager
    def lent(self) -> Iterator[object]:
        """Give the guarded connection out, inside a context in which `db.session` writes on it."""
        with super().lent() as connection, self._app.app_context(), _session_on(self._app, connection):
            yield connection


@contextmanager
def _session_on(app: Flask, connection: Any) -> Iterator[None]:  # noqa: ANN401  SQLAlchemy's
    """Have `db.session` write on a connection; committed at the end of the block, unless that is left by an error."""
    db = app.extensions.get(_EXTENSION)
    if db is None:
        yield
        return
    engine = db.engines.get(None)
    session = db.session(join_transaction_mode="create_savepoint")
    usual = session.get_bind

    def get_bind(*arguments: Any, **options: Any) -> Engine | Connection:  # noqa: ANN401
        found: Engine | Connection = usual(*arguments, **options)
        return connection if found is engine else found

    session.get_bind = get_bind
    yield
    with told_of_the_end():
        session.commit()


def require_shared(app: Flask, url: str) -> None:
    """Raise `ConfigError` unless the default bind of Flask-SQLAlchemy leads to the ledger's database.

    Raises `LedgerUnavailable`, or SQLAlchemy's `OperationalError`, where one of both does not answer.
    """
    db = app.extensions.get(_EXTENSION)
    if db is None:
        return
    with app.app_context():
        engine = db.engines.get(None)
    if engine is None:
        return
    if engine.dialect.name != "postgresql":
        raise ConfigError(
            [f"SQLALCHEMY_DATABASE_URI leads to {engine.dialect.name}; expected the ledger's PostgreSQL"]
        )
    key = secrets.randbits(62)
    with connections.connect(url) as ours, ours.transaction(), engine.begin() as theirs:
        ours.execute(_LOCK, [key])
        if theirs.execute(_TRY, {"key": key}).scalar():
            mistake = (
                f"SQLALCHEMY_DATABASE_URI leads to the database '{engine.url.database}', and the ledger lies in "
                f"'{ours.info.dbname}'; set DATABASE_URL to where the models are"
            )
            raise ConfigError([mistake])
