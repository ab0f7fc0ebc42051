"""Transactions of handlers inside an application's context, with `db.session` of Flask-SQLAlchemy bound to them.

A session's default bind is the run's transaction as long as its handler runs; what has a `bind_key` of its own goes
where that leads, and commits by itself. A commit of the session releases a savepoint; what is left in it is committed
with the run.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from flask import Flask
from sqlalchemy import Connection, Engine, text

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.orm_session import told_of_the_end
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.database import connections

EXTENSION = "sqlalchemy"
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
        with super().lent() as connection, self._app.app_context(), session_on(self._app, connection):
            yield connection


@contextmanager
def session_on(app: Flask, connection: Any) -> Iterator[None]:  # noqa: ANN401  SQLAlchemy's
    """Have `db.session` write on a connection; committed at the end of the block, unless that is left by an error."""
    db = app.extensions.get(EXTENSION)
    if db is None:
        yield
        return
    _let_sessions_join(db.session.session_factory)
    lent = _LENT.set(_Lent(db.engines.get(None), connection))
    try:
        yield
        with told_of_the_end():
            db.session.commit()
    finally:
        _LENT.reset(lent)


class _Lent(NamedTuple):
    """The engine of the default bind, and the connection that stands for it while a handler runs."""

    engine: Engine | None
    connection: Connection


_LENT: ContextVar[_Lent | None] = ContextVar("hookonce_lent", default=None)


class _Joining:
    """A session that joins the transaction of a run: any session that is made while the run's handler is called.

    Handlers call what pushes a context of the application of its own, or removes the session: those that are made then
    are to join as well, or they would commit by themselves.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        if _LENT.get() is not None:
            options["join_transaction_mode"] = "create_savepoint"
        super().__init__(*arguments, **options)

    def get_bind(self, *arguments: Any, **options: Any) -> Engine | Connection:  # noqa: ANN401
        found: Engine | Connection = super().get_bind(*arguments, **options)  # type: ignore[misc]  # a session's
        lent = _LENT.get()
        return lent.connection if lent is not None and found is lent.engine else found


def _let_sessions_join(factory: Any) -> None:  # noqa: ANN401  a sessionmaker
    if not issubclass(factory.class_, _Joining):
        factory.class_ = type(factory.class_.__name__, (_Joining, factory.class_), {})


def require_shared(app: Flask, url: str) -> None:
    """Raise `ConfigError` unless the default bind of Flask-SQLAlchemy leads to the ledger's database.

    Raises `LedgerUnavailable`, or SQLAlchemy's `OperationalError`, where one of both does not answer.
    """
    db = app.extensions.get(EXTENSION)
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
