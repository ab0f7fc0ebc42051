"""A statement that a thread or an event loop waits for: the same rows, the same errors, and nobody else held up."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.statements import fetched
from hookonce.receiver.processes.waits import IN_THREAD, OnLoop, run

LARGE = b"x" * 8 * 1024**2  # more than a socket takes at once


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def on_loop(make):
    async def wait():
        with ThreadPoolExecutor(1) as threads:
            return await make(OnLoop(threads, threads))

    return asyncio.run(wait())


@pytest.mark.parametrize("waiting", [lambda make: run(make(IN_THREAD)), on_loop])
def test_statement_gives_its_rows_and_raises_its_errors(connection, waiting):
    def ask(statement, *parameters):
        return waiting(lambda waits: fetched(connection, statement, parameters, waits))

    assert ask("SELECT n, %b::text FROM generate_series(1, 2) AS n", "a") == [(1, "a"), (2, "a")]
    assert ask("SELECT length(%b::bytea)", LARGE) == [(len(LARGE),)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        ask("SELECT 1 / %b::int", 0)
    assert ask("SELECT 1") == [(1,)]
    connection.close()
    with pytest.raises(psycopg.OperationalError):
        ask("SELECT 1")


def test_statement_says_so_where_the_server_ends_it(connection, database_url):
    pid = connection.info.backend_pid
    with connections.connect(database_url) as other:

        async def end():
            with ThreadPoolExecutor(1) as threads:
                waits = OnLoop(threads, threads)
                asked = asyncio.ensure_future(fetched(connection, "SELECT pg_sleep(10)", [], waits))
                await asyncio.sleep(0)
                await waits.ask(other.execute, "SELECT pg_terminate_backend(%s)", [pid])
                await asked

        with pytest.raises(psycopg.OperationalError):
            asyncio.run(end())


def test_statement_of_an_event_loop_holds_nobody_up(connection):
    async def both():
        with ThreadPoolExecutor(1) as threads:
            asked = asyncio.ensure_future(
                fetched(connection, "SELECT pg_sleep(0.2)", [], OnLoop(threads, threads))
            )
            turns = 0
            while not asked.done():
                await asyncio.sleep(0.001)
                turns += 1
            return turns

    assert asyncio.run(both()) > 20
