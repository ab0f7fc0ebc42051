"""Whatever a handler leaves in a session reaches no other: neither the next handler, nor those behind a pooler."""

import contextlib
from dataclasses import replace

import pytest
from sqlalchemy import text

from hookonce.jobs.attempts.django_executor import DjangoExecutor
from hookonce.jobs.drain import Drain
from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.ledger.runs.batch_size import BatchSize
from tests.support.django_project import entry
from tests.support.inbox import inbox
from tests.support.pooler import PGBOUNCER, pooling
from tests.support.waiting import until

__all__ = ["entry", "inbox"]

needs_a_pooler = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
WAYS = {
    "temp table": "CREATE TEMP TABLE effects (event text)",
    "temp view": "CREATE TEMP VIEW effects AS SELECT 'gone' AS event",
    "temp sequence": "CREATE TEMP SEQUENCE numbers",
    "search path": "PERFORM set_config('search_path', 'elsewhere', false)",
    "role": "PERFORM set_config('role', 'pg_monitor', false)",
    "session's role": "PERFORM set_config('session_authorization', 'pg_monitor', false)",
    "read-only": "PERFORM set_config('default_transaction_read_only', 'on', false)",
    "isolation": "PERFORM set_config('default_transaction_isolation', 'serializable', false)",
    "triggers off": "PERFORM set_config('session_replication_role', 'replica', false)",
    "time zone": "PERFORM set_config('TimeZone', 'Asia/Tokyo', false)",
    "encoding": "PERFORM set_config('client_encoding', 'LATIN1', false)",
    "short limit": "PERFORM set_config('statement_timeout', '1', false)",
    "tenant": "PERFORM set_config('app.tenant', 'acme', false)",
    "advisory lock": "PERFORM pg_advisory_lock(24)",
    "cursor": "DECLARE left_open CURSOR WITH HOLD FOR SELECT 1",
    "channel": "LISTEN left_open",
    "statement": "PREPARE left_open AS SELECT 1",
}
BODIES = {way: done if done.startswith("PERFORM") else f"EXECUTE $x${done}$x$" for way, done in WAYS.items()}
BY = {
    "a DO block": lambda way: f"DO $$ BEGIN {BODIES[way]}; END $$",
    "a function": lambda way: f"SELECT {name_of(way)}()",
    "text": lambda way: WAYS[way].replace("PERFORM", "SELECT"),
}
STATE = """
SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()) AS temp,
       current_setting('search_path') AS search_path, current_user::text AS role, session_user::text AS login,
       current_setting('default_transaction_read_only') AS read_only,
       current_setting('default_transaction_isolation') AS isolation,
       current_setting('session_replication_role') AS replication, current_setting('TimeZone') AS zone,
       current_setting('client_encoding') AS encoding, current_setting('statement_timeout') AS statement_limit,
       current_setting('lock_timeout') AS lock_limit, coalesce(current_setting('app.tenant', true), '') AS tenant,
       (SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND pid = pg_backend_pid()) AS locks,
       (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS cursors,
       (SELECT count(*) FROM pg_listening_channels()) AS channels,
       (SELECT count(*) FROM pg_prepared_statements WHERE from_sql) AS prepared
"""


def name_of(way):
    return "leave_" + "".join(letter if letter.isalpha() else "_" for letter in way)


@pytest.fixture
def leaving(inbox):
    """An inbox whose handlers leave something behind, or look what is there; `told` is what to leave, and how."""
    inbox.connection.execute("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.effects (event text)")
    inbox.connection.execute("GRANT ALL ON effects TO pg_monitor")
    for way, body in BODIES.items():
        inbox.connection.execute(
            f"CREATE FUNCTION {name_of(way)}() RETURNS void LANGUAGE plpgsql AS $f$ BEGIN {body}; END $f$"
        )
    inbox.seen, inbox.leave = {}, None

    def leave_or_look(event, tx):
        if event.type == "leave":
            tx.exec_driver_sql(inbox.leave)
            if event.event_id.startswith("fails"):
                raise LookupError("after all")
            return
        inbox.seen[event.event_id] = tx.exec_driver_sql(STATE).mappings().one()
        tx.execute(text("INSERT INTO effects (event) VALUES (:event)"), {"event": event.event_id})

    inbox.on(leave_or_look, attempts=1)
    return inbox


@contextlib.contextmanager
def one_at_a_time(inbox):
    drain = Drain(inbox.settings, inbox.registry, inbox.attempts_by)
    yield drain.run_due
    drain.close()


@contextlib.contextmanager
def slots(inbox):
    pool = Pool(inbox.settings, inbox.registry, slots=1)
    yield pool.run_due
    pool.close()
    stopping.clear()
    hurrying.clear()


ALL = [
    *((way, by, "ends") for way in WAYS for by in BY),
    *((way, "a function", "fails") for way in WAYS),
]
BY_FUNCTIONS = [case for case in ALL if case[1:] == ("a function", "ends")]


def offenders(inbox, work, cases=ALL):
    """Leave everything in every way, and look each time; return what was not as it is in a fresh session."""
    clean = looked(inbox, work, "clean")
    found = {}
    for way, by, fate in cases:
        inbox.leave, number = BY[by](way), f"{fate}, {way} by {by}"
        inbox.deliver(number, type="leave")
        state = looked(inbox, work, f"after {number}")
        if changed := {name: value for name, value in state.items() if value != clean[name]}:
            found[number] = changed
    return found


def looked(inbox, work, name):
    """Have a handler look, right behind what else is due; give what it saw."""
    inbox.deliver(name, type="look")

    def left():
        work()
        return inbox.rows("SELECT count(*) FROM hookonce.event_states WHERE due_at IS NOT NULL")

    until(left, [(0,)])
    assert name in inbox.seen, inbox.rows("SELECT error FROM hookonce.failures ORDER BY id DESC LIMIT 1")
    return inbox.seen[name]


def test_handler_leaves_nothing_in_its_session_to_the_next(leaving):
    with one_at_a_time(leaving) as work:
        assert offenders(leaving, work) == {}

    assert leaving.effects() == sorted(leaving.seen)


def test_handler_in_a_slot_leaves_nothing_in_its_session_to_the_next(leaving):
    with slots(leaving) as work:
        assert offenders(leaving, work, BY_FUNCTIONS) == {}

    assert leaving.effects() == sorted(leaving.seen)


@pytest.mark.usefixtures("entry")
def test_handler_in_django_leaves_nothing_in_its_session_to_the_next(leaving):
    """What Django itself has set there stays: it does so once for a connection."""

    def leave_or_look(event, connection):
        cursor = connection.cursor()
        if event.type == "leave":
            cursor.execute(leaving.leave)
            return
        cursor.execute(STATE)
        names = [column.name for column in cursor.description]
        leaving.seen[event.event_id] = dict(zip(names, cursor.fetchone(), strict=True))

    leaving.registry = Registry()
    leaving.on(leave_or_look, attempts=1)
    leaving.attempts_by = DjangoExecutor
    with one_at_a_time(leaving) as work:
        assert offenders(leaving, work, BY_FUNCTIONS) == {}

    assert leaving.seen["clean"]["zone"] == "UTC"


def test_batches_and_blocks_leave_nothing_in_their_sessions(leaving):
    def collects(_, tx):
        states.append(dict(tx.exec_driver_sql(STATE).mappings().one()))
        for way in ("tenant", "temp table", "search path"):
            tx.exec_driver_sql(BY["a function"](way))

    def long(event):
        with event.tx() as tx:
            collects([event], tx)

    states = []
    leaving.registry = Registry()
    leaving.on(collects, pattern="a", batch=BatchSize(2))
    leaving.on(long, pattern="b", tx="none")
    leaving.deliver("1", "2", "3", "4", type="a")
    leaving.deliver("5", "6", type="b")

    with one_at_a_time(leaving) as work:
        until(
            lambda: (work(), leaving.rows("SELECT count(*) FROM hookonce.run_states WHERE status = 'done'"))[1],
            [(6,)],
        )

    assert states == states[:1] * 4


@pytest.fixture
def pooled(leaving, data_directory):
    """The same behind a pooler with one connection, which everybody gets after everybody else."""
    with pooling(leaving.settings.database_url, data_directory, size=1, settings="SET timezone = UTC") as url:
        leaving.settings = replace(leaving.settings, database_url=url)
        yield leaving


@needs_a_pooler
def test_handler_leaves_nothing_to_anybody_behind_a_pooler(pooled):
    with one_at_a_time(pooled) as work:
        assert offenders(pooled, work) == {}

    assert pooled.effects() == sorted(pooled.seen)


@needs_a_pooler
def test_handler_in_a_slot_leaves_nothing_to_anybody_behind_a_pooler(pooled):
    with slots(pooled) as work:
        assert offenders(pooled, work, BY_FUNCTIONS) == {}

    assert pooled.effects() == sorted(pooled.seen)
