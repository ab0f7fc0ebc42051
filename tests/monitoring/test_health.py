"""`/readyz` says what a delivery would hear, without writing."""

import contextlib

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from hookonce.receiver.config.settings import Settings
from hookonce.receiver.monitoring import health


@pytest.fixture
def readiness(database_url, redis_url):
    with contextlib.closing(health.Readiness(Settings(database_url, redis_url, {}))) as asked:
        yield asked.look


def test_database_that_takes_writes_is_ready(readiness):
    assert readiness() == (200, {"status": "ok", "database": "ok", "redis": "ok"})


def test_read_only_database_is_unready(readiness, database_url):
    name = conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')

    status, said = readiness()

    assert (status, said["database"]) == (503, "read-only")
