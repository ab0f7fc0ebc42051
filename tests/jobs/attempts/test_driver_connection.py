"""Handlers that take psycopg's own connection: whatever it can do inside a transaction, and nothing that ends one."""

import contextlib
from dataclasses import replace

import psycopg
import pytest
from psycopg.adapt import Dumper
from psycopg.rows import dict_row
from psycopg.types.string import StrDumper
from sqlalchemy import Connection, text

from hookonce.jobs.attempts.driver_cursors import SpareCursor, given
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.jobs.attempts.test_left_in_sessions import WORKERS, needs_a_pooler, worked
from tests.support.inbox import inbox
from tests.support.pooler import pooling
from tests.support.waiting import until

__all__ = ["inbox"]

INSERT = "INSERT INTO effects (event) VALUES (%s)"
SEVERAL = "SELECT 1; COMMIT"


def errors(inbox):
    return [row[0] for row in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id")]


def by_execute(tx, name):
    tx.execute(INSERT, [name])


def by_a_cursor(tx, name):
    with tx.cursor() as cursor:
        cursor.execute(INSERT, [name])


def by_executemany(tx, name):
    tx.cursor().executemany(INSERT, [[name]])


def by_copy(tx, name):
    with tx.cursor() as cursor, cursor.copy("COPY effects FROM STDIN") as copy:
        copy.write_row([name])


def by_a_pipeline(tx, name):
    with tx.pipeline() as pipeline:
        tx.execute(INSERT, [name])
        pipeline.sync()


def by_a_savepoint(tx, name):
    with contextlib.suppress(psycopg.Error), tx.transaction():
        tx.execute(INSERT, ["undone"])
        tx.execute("SELECT 1/0")
    with tx.transaction("named") as savepoint:
        savepoint.connection.execute(INSERT, [name])
    with tx.transaction(force_rollback=True):
        tx.execute(INSERT, ["undone"])


def by_a_stream(tx, name):
    for (each,) in tx.cursor().stream("SELECT %s::text", [name]):
        found = each
    tx.execute(INSERT, [found])


def by_a_cursor_of_the_server(tx, name):
    with tx.cursor("named") as cursor:
        cursor.execute("SELECT %s::text FROM generate_series(1, 3)", [name])
        found = cursor.fetchone()
    tx.execute(INSERT, found)


WRITES = {
    each.__name__: each
    for each in (
        by_execute,
        by_a_cursor,
        by_executemany,
        by_copy,
        by_a_pipeline,
        by_a_savepoint,
        by_a_stream,
        by_a_cursor_of_the_server,
    )
}


@pytest.fixture(params=["direct", pytest.param("pooled", marks=needs_a_pooler)])
def ways_in(request, inbox, data_directory):
    """The inbox, direct or behind PgBouncer."""
    if request.param == "direct":
        yield inbox
        return
    with pooling(inbox.settings.database_url, data_directory) as url:
        inbox.settings = replace(inbox.settings, database_url=url)
        yield inbox
        for each in inbox.drains:
            each.close()
        inbox.drains.clear()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_handler_writes_by_the_connection_of_psycopg(inbox, write):
    def handler(event, tx: psycopg.Connection):
        write(tx, event.event_id)

    inbox.on(handler)
    inbox.deliver("a", "b", "c")

    inbox.work()

    assert errors(inbox) == []
    assert inbox.effects() == ["a", "b", "c"]


def test_connection_of_psycopg_is_the_driver_s_of_sqlalchemy(inbox):
    def handler(event, tx: Connection):
        tx.connection.driver_connection.execute(INSERT, [event.event_id])
        tx.connection.cursor().execute(INSERT, [event.event_id])
        found.append(type(tx.connection.driver_connection))
        found.append(type(tx.execute(text("SELECT 1")).cursor.connection))

    def direct(_, tx: "psycopg.Connection[tuple]"):
        found.append(type(tx))

    found = []
    inbox.on(handler)
    inbox.on(direct)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == ["a", "a"]
    assert len(set(found)) == 1


def test_batch_gets_the_connection_of_psycopg(inbox):
    def handler(events, tx: psycopg.Connection):
        with tx.cursor() as cursor, cursor.copy("COPY effects FROM STDIN") as copy:
            for event in events:
                copy.write_row([event.event_id])

    inbox.on(handler, batch=BatchSize(3))
    inbox.deliver("a", "b", "c")

    inbox.work()

    assert inbox.effects() == ["a", "b", "c"]


def test_async_handler_awaits_the_connection_of_psycopg(inbox):
    async def handler(_, tx: psycopg.AsyncConnection):
        await tx.execute(INSERT, ["execute"])
        async with tx.cursor() as cursor:
            await cursor.executemany(INSERT, [["many"]])
            await cursor.execute("SELECT 1 UNION ALL SELECT 2")
            seen.append([row async for row in cursor])
            async with cursor.copy("COPY effects FROM STDIN") as copy:
                await copy.write_row(["copy"])
            async with cursor.copy("COPY (SELECT 1) TO STDOUT") as copy:
                seen.append([row async for row in copy.rows()])
            seen.append([row async for row in cursor.stream("SELECT generate_series(1, 2)")])
        async with tx.pipeline() as pipeline:
            await tx.execute(INSERT, ["pipeline"])
            await pipeline.sync()
        with contextlib.suppress(psycopg.Error):
            async with tx.transaction():
                await tx.execute(INSERT, ["undone"])
                await tx.execute("SELECT 1/0")
        async with tx.transaction():
            await tx.execute(INSERT, ["savepoint"])
        seen.append(await (await tx.execute("SELECT 7")).fetchone())

    seen = []
    inbox.on(handler)
    inbox.deliver("a")

    inbox.work()

    assert errors(inbox) == []
    assert inbox.effects() == ["copy", "execute", "many", "pipeline", "savepoint"]
    assert seen == [[(1,), (2,)], [("1",)], [(1,), (2,)], (7,)]


def test_async_handler_that_commits_gives_up(inbox):
    async def handler(event, tx: psycopg.AsyncConnection):
        await tx.execute(INSERT, [event.event_id])
        await tx.commit()

    inbox.on(handler)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == []
    assert inbox.runs() == [("a", "handler", "dead", 1)]


def commit(tx):
    tx.commit()


def close(tx):
    tx.close()


def block(tx):
    with tx:
        pass


def autocommit(tx):
    tx.autocommit = True


def set_autocommit(tx):
    tx.set_autocommit(True)


def libpq(tx):
    tx.pgconn.exec_(b"COMMIT")


def libpq_of_its_info(tx):
    tx.info.pgconn.exec_(b"COMMIT")


def notifies(tx):
    tx.notifies()


def a_cursor_of_psycopg_s(tx):
    psycopg.Cursor(tx).execute("COMMIT")


def a_client_cursor(tx):
    psycopg.ClientCursor(tx).execute("COMMIT")


def a_cursor_on_what_a_cursor_leads_to(tx):
    psycopg.Cursor(tx.execute("SELECT 1").connection).execute("COMMIT")


def a_cursor_on_what_a_savepoint_leads_to(tx):
    with tx.transaction() as savepoint:
        psycopg.Cursor(savepoint.connection).execute("COMMIT")


def two_phases(tx):
    tx.tpc_begin("x")


def text_of_a_statement(tx):
    tx.execute("COMMIT AND CHAIN")


def text_with_values(tx):
    tx.execute("/* %s */ COMMIT", ["x"])


def text_in_a_pipeline(tx):
    with tx.pipeline():
        tx.execute("COMMIT AND CHAIN")


def text_of_many(tx):
    tx.cursor().executemany("COMMIT", [[], []])


REFUSED = [
    commit,
    close,
    block,
    autocommit,
    set_autocommit,
    libpq,
    libpq_of_its_info,
    notifies,
    a_cursor_of_psycopg_s,
    a_client_cursor,
    a_cursor_on_what_a_cursor_leads_to,
    a_cursor_on_what_a_savepoint_leads_to,
    two_phases,
    text_of_a_statement,
    text_in_a_pipeline,
    text_of_many,
]


@pytest.mark.parametrize("end", REFUSED, ids=lambda each: each.__name__)
def test_handler_ends_no_transaction_by_the_connection_of_psycopg(inbox, end):
    def handler(event, tx: psycopg.Connection):
        tx.execute(INSERT, [event.event_id])
        end(tx)

    inbox.on(handler, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == []
    assert inbox.runs() == [("a", "handler", "dead", 1)]
    assert "hookonce's" in errors(inbox)[0]


def raises_another(tx):
    try:
        tx.commit()
    except Exception:  # noqa: BLE001
        raise LookupError("after all") from None


def goes_on(tx):
    with contextlib.suppress(Exception):
        tx.commit()


def goes_on_behind_a_text(tx):
    with contextlib.suppress(Exception):
        tx.execute("COMMIT")


@pytest.mark.parametrize("end", [commit, raises_another, goes_on, goes_on_behind_a_text])
def test_handler_that_tries_to_commit_gives_up_whatever_it_makes_of_that(inbox, end):
    def handler(event, tx: psycopg.Connection):
        tx.execute(INSERT, [event.event_id])
        end(tx)

    inbox.on(handler, attempts=3)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == []
    assert inbox.runs() == [("a", "handler", "dead", 1), ("b", "handler", "dead", 1)]
    assert "return to commit it" in errors(inbox)[0]


SENDS = {
    "execute": lambda tx: tx.execute(SEVERAL),
    "with values": lambda tx: tx.execute(f"SELECT %s::int; {SEVERAL}", [1]),
    "prepared": lambda tx: tx.execute(SEVERAL, prepare=True),
    "binary": lambda tx: tx.execute(SEVERAL, binary=True),
    "cursor": lambda tx: tx.cursor(binary=True).execute(SEVERAL),
    "many": lambda tx: tx.cursor().executemany(SEVERAL, [[]]),
    "stream": lambda tx: list(tx.cursor().stream(SEVERAL)),
    "copy": lambda tx: tx.cursor().copy("COPY (SELECT 1) TO STDOUT; COMMIT").__enter__(),
    "copy with values": lambda tx: tx.cursor().copy("COPY (SELECT %s) TO STDOUT; COMMIT", ["x"]).__enter__(),
    "cursor of the server": lambda tx: tx.cursor("x").execute(SEVERAL),
    "composed": lambda tx: tx.execute(psycopg.sql.SQL(SEVERAL)),
    "bytes": lambda tx: tx.execute(SEVERAL.encode()),
}


@pytest.mark.parametrize("send", SENDS.values(), ids=SENDS)
def test_server_refuses_several_statements_in_one_text(ways_in, send):
    def handler(event, tx: psycopg.Connection):
        tx.execute(INSERT, [event.event_id])
        with pytest.raises(psycopg.errors.SyntaxError) as refused, tx.transaction():
            send(tx)
        codes.append(refused.value.sqlstate)

    codes = []
    ways_in.on(handler, attempts=1)
    ways_in.deliver("a")

    ways_in.work()

    assert (errors(ways_in), codes) == ([], ["42601"])
    assert ways_in.effects() == ["a"]


@pytest.mark.parametrize("statement", [text(SEVERAL), text(f"SELECT :x; {SEVERAL}").bindparams(x=1)])
def test_server_refuses_several_statements_of_sqlalchemy(ways_in, statement):
    def handler(_, tx):
        tx.execute(text("INSERT INTO effects VALUES ('a')"))
        tx.execute(statement)

    ways_in.on(handler, attempts=1)
    ways_in.deliver("a")

    ways_in.work()

    assert ways_in.effects() == []
    assert "cannot insert multiple commands into a prepared statement" in errors(ways_in)[0]


@pytest.mark.parametrize("kind", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor])
def test_cursor_of_any_class_is_forced_by_what_psycopg_still_calls(database_url, kind):
    class Recording:
        has_ended = True
        asked = 0

        def require_given(self):
            self.asked += 1

        def look_at(self, statement):
            seen.append(statement)

    seen = []
    with psycopg.connect(database_url) as connection:
        connection.__dict__["guard"] = guard = Recording()
        connection.cursor_factory = given(kind)

        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute(SEVERAL)

    assert (seen, guard.asked) == ([SEVERAL.encode()], 1)


def test_result_that_is_held_is_not_touched_by_the_next_statement(inbox):
    def handler(_, tx: psycopg.Connection):
        first = tx.execute("SELECT generate_series(1, 3)")
        fetch = tx.execute("SELECT 4").fetchone
        rows = iter(tx.execute("SELECT 5"))
        tx.execute("SELECT 0")
        found.extend([first.fetchall(), fetch(), *rows])

    found = []
    inbox.on(handler)
    inbox.deliver("a", "b")

    inbox.work()

    assert found == [[(1,), (2,), (3,)], (4,), (5,)] * 2


def test_cursor_that_nobody_holds_is_used_again(inbox):
    def handler(_, tx: psycopg.Connection):
        seen.extend([id(tx.execute("SELECT 1")), id(tx.execute("SELECT 1"))])

    seen = []
    inbox.on(handler)
    inbox.deliver("a", "b")

    inbox.work()

    assert len(set(seen)) == 1


class Loud(Dumper):
    oid = 25

    def dump(self, obj):
        return obj.upper().encode()


def loud_connection(tx):
    tx.adapters.register_dumper(str, Loud)


def loud_statement(tx):
    tx.adapters.register_dumper(str, Loud)
    tx.execute("SELECT 1")


def loud_cursor(tx):
    tx.execute("SELECT 1").adapters.register_dumper(str, Loud)


def dict_rows(tx):
    tx.row_factory = dict_row


def dict_rows_of_a_cursor(tx):
    tx.execute("SELECT 1").row_factory = dict_row


def binary_rows(tx):
    tx.execute("SELECT 1", binary=True)


def binary_cursor(tx):
    tx.execute("SELECT 1").format = psycopg.pq.Format.BINARY


@pytest.mark.parametrize(
    "leave",
    [
        loud_connection,
        loud_statement,
        loud_cursor,
        dict_rows,
        dict_rows_of_a_cursor,
        binary_rows,
        binary_cursor,
    ],
    ids=lambda each: each.__name__,
)
def test_what_a_handler_sets_on_the_connection_of_psycopg_is_its_own(inbox, leave):
    def handler(_, tx: psycopg.Connection):
        found.append((tx.execute("SELECT %s::text", ["a"]).fetchone(), tx.execute("SELECT 1").format))
        leave(tx)

    found = []
    inbox.on(handler)
    inbox.deliver("a", "b")

    inbox.work()

    assert found == [(("a",), psycopg.pq.Format.TEXT)] * 2


def test_adapter_is_known_that_is_registered_between_statements(inbox):
    def handler(_, tx: psycopg.Connection):
        for dumper in (Loud, StrDumper, Loud):
            tx.adapters.register_dumper(str, dumper)
            found.append(tx.execute("SELECT %s::text", ["a"]).fetchone()[0])

    found = []
    inbox.on(handler)
    inbox.deliver("a")

    inbox.work()

    assert found == ["A", "a", "A"]


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
def test_session_of_a_handler_that_takes_the_driver_is_kept(inbox, worker):
    def handler(event, tx: psycopg.Connection):
        backends.add(tx.info.backend_pid)
        by_copy(tx, event.event_id)
        tx.execute("SET application_name = 'mine'")

    backends = set()
    inbox.on(handler)
    inbox.deliver(*map(str, range(12)))

    with worker(inbox) as work:
        worked(inbox, work)

    assert len(backends) <= 8
    assert len(inbox.effects()) == 12


@pytest.mark.parametrize(
    "statement",
    ["PREPARE x AS SELECT 1", "DEALLOCATE ALL", "DISCARD PLANS", "SET client_encoding = 'LATIN1'"],
)
def test_session_that_nothing_puts_back_is_closed(inbox, statement):
    def handler(_, tx: psycopg.Connection):
        backends.append(tx.info.backend_pid)
        tx.execute(statement)

    backends = []
    inbox.on(handler)
    inbox.deliver("a", "b")

    inbox.work()

    assert errors(inbox) == []
    assert len(set(backends)) == 2


@pytest.mark.parametrize(
    "by", ["DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$", "CALL forgets()", "SELECT forgot()"]
)
def test_what_is_deallocated_by_code_breaks_no_end(inbox, by):
    def handler(event, tx: psycopg.Connection):
        tx.execute(INSERT, [event.event_id], prepare=False)
        if event.event_id == "3":
            tx.execute(by, prepare=False)

    inbox.connection.execute(
        "CREATE PROCEDURE forgets() LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"
    )
    inbox.connection.execute(
        "CREATE FUNCTION forgot() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN 1; END $$"
    )
    inbox.on(handler, attempts=1)
    inbox.deliver(*map(str, range(6)))

    until(lambda: (inbox.work(), inbox.rows("SELECT count(*) FROM hookonce.queue"))[1], [(0,)])

    assert errors(inbox) == []
    assert inbox.effects() == [*map(str, range(6))]


@pytest.mark.parametrize(
    "by",
    ["SELECT prepares()", "INSERT INTO kept VALUES (prepares())", "DO $$ BEGIN PERFORM prepares(); END $$"],
)
def test_what_is_prepared_by_a_function_does_not_meet_the_next_handler(inbox, by):
    def handler(_, tx: psycopg.Connection):
        found.append(tx.execute("SELECT count(*) FROM pg_prepared_statements WHERE from_sql").fetchone())
        tx.execute(by)

    inbox.connection.execute(
        "CREATE TABLE kept (x int);"
        "CREATE FUNCTION prepares() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'PREPARE mine AS SELECT 1';"
        " RETURN 1; END $$"
    )
    found = []
    inbox.on(handler, attempts=1)
    inbox.deliver("a", "b", "c")

    inbox.work()

    assert errors(inbox) == []
    assert found == [(0,)] * 3


def test_spare_cursor_is_lent_only_while_nobody_holds_it():
    spare, held = SpareCursor(), object()

    spare.put(held)
    assert spare.take() is None

    spare.put(object())
    assert spare.take() is not None
    assert spare.take() is None
