"""The fixtures of pytest: `tx`, `inbox`, and what they stand on. Whoever asks for none of them imports nothing else.

Servers are started for the first test that needs them, once for all processes of pytest-xdist, and end with the last.
Set HOOKONCE_TEST_DATABASE_URL (of a role that may make databases) and HOOKONCE_TEST_REDIS_URL to use others.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hookonce.testing.inbox import Inbox
    from hookonce.testing.servers import Databases


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
def hookonce_tables() -> None:
    """Make your application's tables here: override it, and take `hookonce_database_url`. Called once."""


@pytest.fixture(scope="session")
def _hookonce_tx_database(
    hookonce_databases: "Databases",
    hookonce_tables: None,  # noqa: ARG001  made first
) -> Iterator[str]:
    with hookonce_databases.copy() as url:
        yield url


@pytest.fixture
def tx(_hookonce_tx_database: str) -> "Iterator[Connection]":
    """A transaction with your tables in it, as handlers get it; rolled back when the test is over."""
    from hookonce.testing import servers

    with servers.rolled_back(_hookonce_tx_database) as connection:
        yield connection


@pytest.fixture
def inbox(
    hookonce_databases: "Databases",
    hookonce_tables: None,  # noqa: ARG001  made first
) -> "Iterator[Inbox]":
    """A real inbox with an empty ledger and your tables: what is delivered to it, your handlers do."""
    from hookonce.testing.inbox import Inbox

    with hookonce_databases.copy() as database_url, hookonce_databases.redis() as redis_url:
        made = Inbox(database_url, redis_url)
        try:
            yield made
        finally:
            made.close()
