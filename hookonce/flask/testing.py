"""A Flask application in tests of `hookonce.testing`: its `db.session` leads to a database of the tests for a while.

Both the handlers' writes and the test's own queries go there, and what the default bind led to before is not touched.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from flask import Flask, has_app_context
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from hookonce.flask.transactions import EXTENSION, FlaskTransactions, session_on
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.handlers import Handler

_DRIVER = "postgresql+psycopg:"


class FlaskWorker:
    """The worker of `flask hookonce worker` for an inbox of the tests."""

    def __init__(self, app: Flask) -> None:
        self.transactions: MakeTransactions = partial(FlaskTransactions, app=app)
        """Transactions that handlers write in, as in `flask hookonce worker`."""

    def require_fitting(self, handlers: Iterable[Handler]) -> None:
        """Refuse nothing: it runs what `hookonce worker` does."""

    def require_no_transaction(self) -> None:
        """Refuse nothing: a handler's transaction is on a connection of its own."""

    def close(self) -> None:
        """Close nothing: the tests' connections are not kept."""


@contextmanager
def worker(app: Flask, database_url: str) -> Iterator[FlaskWorker]:
    """Have an application's worker run handlers in a database as long as the block lasts."""
    with _leading(app, database_url):
        yield FlaskWorker(app)


def make_tables(app: Flask, database_url: str) -> None:
    """Make the tables of all models of Flask-SQLAlchemy's default bind in a database."""
    with _leading(app, database_url), app.app_context():
        if (db := app.extensions.get(EXTENSION)) is not None:
            db.create_all(bind_key=None)


@contextmanager
def in_transaction(app: Flask, database_url: str, connection: Connection) -> Iterator[None]:
    """Have `db.session` write on a connection, inside a context of the application."""
    with _leading(app, database_url), app.app_context(), session_on(app, connection):
        yield


@contextmanager
def _leading(app: Flask, database_url: str) -> Iterator[None]:
    """Have the default bind of Flask-SQLAlchemy lead to another database; without Flask-SQLAlchemy there is none."""
    db = app.extensions.get(EXTENSION)
    if db is None:
        yield
        return
    with app.app_context():
        engines: dict[str | None, Any] = db.engines
    before = engines.get(None)
    engines[None] = made = create_engine(
        database_url.replace("postgresql:", _DRIVER, 1), poolclass=NullPool
    )  # nothing stays connected to a database that is copied or dropped
    try:
        yield
    finally:
        if has_app_context():  # one of the test's own, which would end its session when the database has gone
            db.session.remove()
        made.dispose()
        if before is None:
            del engines[None]
        else:
            engines[None] = before
