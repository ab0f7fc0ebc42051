"""Whatever a handler leaves in a session reaches no other: neither the next handler, nor those behind a pooler.

Each event of a test looks at its session, and leaves something there in one way: whoever has that session next looks.
"""

import contextlib
from dataclasses import replace

import psycopg
import pytest

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.ledger.runs import ends
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.support.django_project import entry, lead
from tests.support.inbox import inbox
from tests.support.pooler import PGBOUNCER, pooling
from tests.support.waiting import until

__all__ = ["entry", "inbox"]

needs_a_pooler = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


def setting(name, value):
    return f"PERFORM set_config('{name}', '{value}', false)"


WAYS = {
    "temp table": "CREATE TEMP TABLE effects (event text)",
    "temp table that is emptied": "CREATE TEMP TABLE emptied (x int) ON COMMIT DELETE ROWS",
    "temp view": "CREATE TEMP VIEW effects AS SELECT 'gone' AS event",
    "temp sequence": "CREATE TEMP SEQUENCE numbers",
    "temp function": "CREATE FUNCTION pg_temp.now() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "temp type": "CREATE TYPE pg_temp.pair AS (a int, b int)",
    "search path": setting("search_path", "elsewhere"),
    "role": setting("role", "pg_monitor"),
    "session's role": setting("session_authorization", "pg_monitor"),
    "read-only": setting("default_transaction_read_only", "on"),
    "characteristics": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "isolation": setting("default_transaction_isolation", "serializable"),
    "deferrable": setting("default_transaction_deferrable", "on"),
    "triggers off": setting("session_replication_role", "replica"),
    "row security": setting("row_security", "off"),
    "time zone": setting("TimeZone", "Asia/Tokyo"),
    "dates": setting("DateStyle", "German"),
    "intervals": setting("IntervalStyle", "iso_8601"),
    "binary": setting("bytea_output", "escape"),
    "strings": setting("standard_conforming_strings", "off"),
    "encoding": setting("client_encoding", "LATIN1"),
    "short limit": setting("statement_timeout", "1"),
    "short lock": setting("lock_timeout", "1"),
    "no flush": setting("synchronous_commit", "off"),
    "plans": setting("enable_indexscan", "off"),
    "name": setting("application_name", "somebody"),
    "tenant": setting("app.tenant", "acme"),
    "tenant by a deferred trigger": "INSERT INTO deferring VALUES (1)",
    "advisory lock": "PERFORM pg_advisory_lock(24)",
    "shared advisory lock": "PERFORM pg_advisory_lock_shared(24, 25)",
    "cursor": "DECLARE left_open CURSOR WITH HOLD FOR SELECT 1",
    "channel": "LISTEN left_open",
    "statement": "PREPARE left_open AS SELECT 1",
    "number": "PERFORM nextval('public.numbers')",
}
BODIES = {way: done if done.startswith("PERFORM") else f"EXECUTE $x${done}$x$" for way, done in WAYS.items()}
BY = {
    "a DO block": lambda way: f"DO $$ BEGIN {BODIES[way]}; END $$",
    "a function": lambda way: f"SELECT {name_of(way)}()",
    "text": lambda way: WAYS[way].replace("PERFORM", "SELECT"),
    "the driver": lambda way: WAYS[way].replace("PERFORM", "SELECT"),
}
STATE = """
SELECT pg_backend_pid() AS backend,
       (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema())
       + (SELECT count(*) FROM pg_proc WHERE pronamespace = pg_my_temp_schema()) AS temp,
       current_user::text AS role, session_user::text AS login,
       (SELECT json_object_agg(name, setting) FROM pg_settings WHERE strpos(name, '.') = 0) AS settings,
       coalesce(current_setting('app.tenant', true), '') AS tenant,
       (SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND classid IN (0, 24) AND objid IN (24, 25)) AS locks,
       (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS cursors,
       (SELECT count(*) FROM pg_listening_channels()) AS channels,
       (SELECT count(*) FROM pg_prepared_statements WHERE from_sql) AS prepared,
       public.last_number() AS number
"""
TABLES = """
CREATE SEQUENCE numbers;
CREATE FUNCTION last_number() RETURNS bigint LANGUAGE plpgsql AS $f$
BEGIN RETURN currval('public.numbers'); EXCEPTION WHEN object_not_in_prerequisite_state THEN RETURN NULL; END $f$;
CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.effects (event text); CREATE TABLE deferring (x int);
CREATE FUNCTION be_late() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN PERFORM set_config('app.tenant', 'late', false); RETURN NULL; END $f$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON deferring DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
EXECUTE FUNCTION be_late()
"""
STRANGER = "a stranger, whose name is another"


def name_of(way):
    return "leave_" + "".join(letter if letter.isalpha() else "_" for letter in way)


class Leaving:
    """What events of an inbox leave and find: each says in its id the way, by what, and how it ends."""

    def __init__(self, inbox):
        self.inbox = inbox
        self.clean = None
        self.looks = 0
        self.last = {}
        self.found = {}

    def statement(self, name):
        """Return what leaves something behind, by the id of an event; None for one that looks only."""
        way, _, by = name.partition(" by ")
        return BY[by](way) if by else None

    def look(self, name, row):
        """Compare what is there with what there was at the first look, and know who had the session before."""
        state = dict(row)
        backend, settings = state.pop("backend"), state.pop("settings")
        state |= settings
        self.clean = self.clean or state
        if name == STRANGER:
            state["application_name"] = self.clean["application_name"]
        before, self.last[backend] = self.last.get(backend, "nobody"), name
        self.looks += 1
        if changed := {key: value for key, value in state.items() if value != self.clean.get(key)}:
            self.found[before] = changed

    def plain(self, event, tx):
        name = event.event_id.partition(": ")[2]
        self.look(event.event_id, tx.exec_driver_sql(STATE).mappings().one())
        if (statement := self.statement(name)) is not None:
            if name.endswith("the driver"):
                tx.connection.driver_connection.execute(statement)
            else:
                tx.exec_driver_sql(statement)
        if event.event_id.startswith("fails"):
            raise LookupError("after all")

    def session(self, event, session):
        self.plain(event, session.connection())

    def block(self, event):
        with event.tx() as tx:
            self.plain(event, tx)

    def batch(self, events, tx):
        self.plain(events[0], tx)
        if any(event.event_id.startswith("fails") for event in events[1:]):
            raise LookupError("after all")

    async def coroutine(self, event, tx):
        row = (await tx.exec_driver_sql(STATE)).mappings().one()
        self.look(event.event_id, row)
        if (statement := self.statement(event.event_id.partition(": ")[2])) is not None:
            await tx.exec_driver_sql(statement)

    def django(self, event, connection):
        cursor = connection.cursor()
        cursor.execute(STATE)
        names = [column.name for column in cursor.description]
        self.look(event.event_id, zip(names, cursor.fetchone(), strict=True))
        name = event.event_id.partition(": ")[2]
        if (statement := self.statement(name)) is not None:
            (connection.connection if name.endswith("the driver") else cursor).execute(statement)
        if event.event_id.startswith("fails"):
            raise LookupError("after all")


@pytest.fixture
def leaving(inbox):
    inbox.connection.execute(TABLES)
    for way, body in BODIES.items():
        inbox.connection.execute(
            f"CREATE FUNCTION {name_of(way)}() RETURNS void LANGUAGE plpgsql AS $f$ BEGIN {body}; END $f$"
        )
    return Leaving(inbox)


@pytest.fixture
def handlers(leaving):
    """All kinds of handlers, each for a type of event."""
    inbox = leaving.inbox

    def plain(event, tx):
        leaving.plain(event, tx)

    def session(event, session):
        leaving.session(event, session)

    async def coroutine(event, tx):
        await leaving.coroutine(event, tx)

    def block(event):
        leaving.block(event)

    def batch(events, tx):
        leaving.batch(events, tx)

    inbox.on(plain, pattern="plain", attempts=1)
    inbox.on(session, pattern="session", attempts=1)
    inbox.on(coroutine, pattern="coroutine", attempts=1)
    inbox.on(block, pattern="block", attempts=1, tx="none")
    inbox.on(batch, pattern="batch", attempts=1, batch=BatchSize(2))
    return leaving


@contextlib.contextmanager
def one_slot(inbox):
    drain = SingleSlot(inbox.settings, inbox.registry, inbox.transactions)
    yield drain.run_due
    drain.close()


@contextlib.contextmanager
def eight_slots(inbox):
    pool = Pool(inbox.settings, inbox.registry, inbox.transactions, slots=8)
    yield pool.run_due
    pool.close()
    stopping.clear()
    hurrying.clear()


WORKERS = {"one slot": one_slot, "eight slots": eight_slots}
KINDS = ("session", "coroutine", "block", "batch")
IN_ALL_WAYS = [
    *(("plain", f"ends: {way} by {by}") for way in WAYS for by in BY),
    *(("plain", f"fails: {way} by a function") for way in WAYS),
    *((kind, f"{kind}: {way} by a function") for way in WAYS for kind in KINDS),
    *(("batch", f"fails {n}: {way} by a function") for way in WAYS for n in range(2)),
]
IN_DJANGO = [
    *(("django", f"ends: {way} by {by}") for way in WAYS for by in BY),
    *(("django", f"fails: {way} by a function") for way in WAYS),
]


def offenders(leaving, worker, cases):
    """Have each case look and leave, and some only look behind them; return what whom was not as at the first look."""
    inbox = leaving.inbox
    with worker(inbox) as work:
        inbox.deliver("first", type=cases[0][0])
        worked(inbox, work)
        for number, (kind, name) in enumerate(cases):
            inbox.deliver(name, type=kind)
            if number % 40 == 0:
                worked(inbox, work)
        inbox.deliver(*(f"last {n}" for n in range(20)), type=cases[0][0])
        worked(inbox, work)
    assert inbox.rows("SELECT count(*) FROM hookonce.queue") == [(0,)]
    assert leaving.looks >= 20 + len(cases) - sum(kind == "batch" for kind, _ in cases) // 2
    return leaving.found


def worked(inbox, work):
    until(lambda: (work(), inbox.rows("SELECT count(*) FROM hookonce.queue"))[1], [(0,)])


@pytest.mark.parametrize(
    "worker",
    [
        pytest.param(one_slot, id="one slot"),
        pytest.param(eight_slots, id="eight slots", marks=pytest.mark.long),  # as behind a pooler, below
    ],
)
def test_handler_leaves_nothing_in_its_session_to_the_next(handlers, worker):
    assert offenders(handlers, worker, IN_ALL_WAYS) == {}


@contextlib.contextmanager
def pooled(leaving, directory, size):
    """Have the inbox be behind a pooler with few connections, which everybody gets after everybody else."""
    settings = leaving.inbox.settings
    with pooling(settings.database_url, directory, size=size, settings="SET timezone = UTC") as url:
        leaving.inbox.settings = replace(settings, database_url=url)
        yield url


@needs_a_pooler
@pytest.mark.parametrize(
    ("worker", "size"),
    [
        pytest.param(one_slot, 1, id="one slot", marks=pytest.mark.long),
        pytest.param(eight_slots, 3, id="eight slots"),
    ],
)
def test_handler_leaves_nothing_to_anybody_behind_a_pooler(handlers, data_directory, worker, size):
    with pooled(handlers, data_directory, size) as url:
        assert offenders(handlers, worker, IN_ALL_WAYS) == {}

        with psycopg.connect(libpq_url(url), autocommit=True, prepare_threshold=None) as stranger:
            row = stranger.execute(STATE)
            names = [column.name for column in row.description]
            handlers.look(STRANGER, zip(names, row.fetchone(), strict=True))
    assert handlers.found == {}


@pytest.fixture
def in_django(leaving, entry):  # noqa: ARG001  first there is Django
    def django(event, connection):
        leaving.django(event, connection)

    leaving.inbox.registry = Registry()
    leaving.inbox.on(django, attempts=1)
    leaving.inbox.transactions = DjangoTransactions
    return leaving


def test_handler_in_django_leaves_nothing_in_its_session_to_the_next(in_django):
    """What Django itself has set there stays: it does so once for a connection."""
    assert offenders(in_django, one_slot, IN_DJANGO) == {}

    assert in_django.clean["TimeZone"] == "UTC"


@needs_a_pooler
def test_handler_in_django_leaves_nothing_to_anybody_behind_a_pooler(in_django, data_directory, entry):
    with pooled(in_django, data_directory, 1) as url:
        pool = url.partition("?host=")[2].partition("&")[0]
        lead("default", entry | {"HOST": pool, "PORT": "6432", "DISABLE_SERVER_SIDE_CURSORS": True})

        assert offenders(in_django, one_slot, IN_DJANGO) == {}


LASTING = {
    "temp table that is emptied": "temp",
    "time zone": "TimeZone",
    "plans": "enable_indexscan",
    "tenant": "tenant",
    "cursor": "cursors",
    "channel": "channels",
    "number": "number",
}


def test_worker_that_takes_nothing_out_is_found_out(handlers, monkeypatch):
    monkeypatch.setattr(ends, "taking_out", lambda *_, **__: ())
    cases = [("plain", f"ends: {way} by a function") for way in LASTING]

    found = offenders(handlers, one_slot, cases)

    assert set(LASTING.values()) == {key for changed in found.values() for key in changed}
    assert {name for _, name in cases} <= set(found)
