"""A statement whose answer is waited for as its caller waits (`receiver.processes.waits`)."""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.waiting import Ready, Wait

from hookonce.receiver.ledger.database import schema
from hookonce.receiver.processes.waits import Waits


async def fetched(
    connection: psycopg.Connection, statement: str, parameters: Sequence[object], waits: Waits
) -> list[tuple[Any, ...]]:
    """Execute a statement, prepared where that is allowed, and return its rows. Raises as `Connection.execute` does.

    psycopg says in what it makes of a statement for what it would wait; its own cursors, of threads and of loops, are
    no more than two ways to do so.
    """
    if connection.prepare_threshold is None:  # a pooler's: it takes a transaction of several statements
        return await waits.ask_server(lambda: connection.execute(statement, parameters).fetchall())
    cursor = connection.cursor()
    # No public part of psycopg starts a statement without waiting; `tests/ledger/test_statements.py` notices a change.
    query = schema.named(statement, schema.of(connection))
    steps = cursor._execute_gen(query, parameters, prepare=True)  # noqa: SLF001
    socket = connection.pgconn.socket
    with connection.lock:  # as psycopg does; on a loop nobody else has the connection
        try:
            wanted = next(steps)
            while True:
                if wanted & Wait.W:
                    await waits.writable(socket)
                    wanted = steps.send(Ready.W)
                else:
                    await waits.readable(socket)
                    wanted = steps.send(Ready.R)
        except StopIteration:
            pass
    return cursor.fetchall()
