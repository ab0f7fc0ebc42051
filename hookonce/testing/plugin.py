"""The fixtures of pytest: `tx`, `inbox`, and what they stand on. A run that asks for none of them imports nothing else.

Servers are started for the first test that needs them, once for all processes of pytest-xdist, and end with the last.
Set HOOKONCE_TEST_DATABASE_URL (of a role that may make databases) and HOOKONCE_TEST_REDIS_URL to use others.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask import Flask
    from sqlalchemy import Connection

    from hookonce.testing.inbox import FrameworkWorker, Inbox
    from hookonce.testing.servers import Databases

    Access = Callable[[], AbstractContextManager[object]]


@pytest.fixture(scope="session")
def hookonce_databases() -> "Iterator[Databases]":
    """The servers of this run, and a migrated database to copy."""
    from hookonce.testing import servers

    with servers.databases() as databases:
        yield databases


@pytest.fixture(scope="session")
def hookonce_database_url(hookonce_databases: "Databases") -> str:
    """The URL of the database that every test gets a copy of, as psycopg and libpq take it."""
    return hookonce_databases.template


@pytest.fixture(scope="session")
def hookonce_django_database() -> str | None:
    """The alias of DATABASES that handlers write to: HOOKONCE_DATABASE, or `default`; None without `hookonce.django`.

    Override it where `manage.py hookonce_worker` is told another one by `--database`.
    """
    found = sys.modules.get("django.apps")
    is_installed = found is not None and found.apps.ready and found.apps.is_installed("hookonce.django")
    if not is_installed:
        return None
    from hookonce.django.ledger import ledger_alias

    return ledger_alias()


@pytest.fixture(scope="session")
def hookonce_flask_app() -> "Flask | None":
    """Your Flask application: override it to have handlers run inside it, as `flask hookonce worker` runs them.

    `db.session` of Flask-SQLAlchemy then writes in the run's transaction, and in a test it leads to the same database.
    """
    return None


@pytest.fixture(scope="session")
def _hookonce_django_access(request: pytest.FixtureRequest) -> "Access":
    """Access to Django's databases, which pytest-django keeps from tests that are not marked: these here are ours."""
    if not request.config.pluginmanager.has_plugin("django"):
        return nullcontext
    unblock: Access = request.getfixturevalue("django_db_blocker").unblock
    return unblock


@pytest.fixture(scope="session")
def hookonce_tables(
    hookonce_database_url: str,
    hookonce_django_database: str | None,
    hookonce_flask_app: "Flask | None",
    _hookonce_django_access: "Access",
) -> None:
    """Make your application's tables here: override it, and take `hookonce_database_url`. Called once.

    In a Django project it migrates; with `hookonce_flask_app` it makes the tables of Flask-SQLAlchemy's models.
    """
    if hookonce_django_database is not None:
        from hookonce.django import testing

        with _hookonce_django_access():
            testing.migrate(hookonce_django_database, hookonce_database_url)
    if hookonce_flask_app is not None:
        from hookonce.flask import testing as flask_testing

        flask_testing.make_tables(hookonce_flask_app, hookonce_database_url)


@pytest.fixture(scope="session")
def _hookonce_tx_database(
    hookonce_databases: "Databases",
    hookonce_tables: None,  # noqa: ARG001  made first
) -> Iterator[str]:
    with hookonce_databases.copy() as url:
        yield url


@pytest.fixture
def tx(
    _hookonce_tx_database: str,
    hookonce_django_database: str | None,
    hookonce_flask_app: "Flask | None",
    _hookonce_django_access: "Access",
) -> "Iterator[Connection | Any]":
    """A transaction with your tables in it, as handlers get it; rolled back when the test is over.

    In a Django project it is Django's connection; with `hookonce_flask_app` the application's `db.session` is in it.
    """
    if hookonce_django_database is None:
        from hookonce.testing import servers

        with servers.rolled_back(_hookonce_tx_database) as connection, ExitStack() as stack:
            if hookonce_flask_app is not None:
                from hookonce.flask import testing as flask_testing

                stack.enter_context(
                    flask_testing.in_transaction(hookonce_flask_app, _hookonce_tx_database, connection)
                )
            yield connection
        return
    from hookonce.django import testing

    with (
        _hookonce_django_access(),
        testing.rolled_back(hookonce_django_database, _hookonce_tx_database) as database,
    ):
        yield database


@pytest.fixture
def inbox(
    hookonce_databases: "Databases",
    hookonce_tables: None,  # noqa: ARG001  made first
    hookonce_django_database: str | None,
    hookonce_flask_app: "Flask | None",
    _hookonce_django_access: "Access",
) -> "Iterator[Inbox]":
    """A real inbox with an empty ledger and your tables: what is delivered to it, your handlers do."""
    from hookonce.testing.inbox import Inbox

    with ExitStack() as stack:
        database_url = stack.enter_context(hookonce_databases.copy())
        redis_url = stack.enter_context(hookonce_databases.redis())
        worker: FrameworkWorker | None = None
        if hookonce_django_database is not None:
            from hookonce.django import testing

            stack.enter_context(_hookonce_django_access())
            worker = stack.enter_context(testing.worker(hookonce_django_database, database_url))
        elif hookonce_flask_app is not None:
            from hookonce.flask import testing as flask_testing

            worker = stack.enter_context(flask_testing.worker(hookonce_flask_app, database_url))
        made = Inbox(database_url, redis_url, worker)
        stack.callback(made.close)
        yield made
