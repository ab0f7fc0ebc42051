"""What PostgreSQL would do for each statement of receivers, workers and sweeps, with a ledger of some size."""

import re
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from hookonce.jobs.handlers import Handler, Registry
from hookonce.receiver.encryption import OFF
from hookonce.receiver.intake import deduplication
from hookonce.receiver.ledger import id_at_time, pauses, store
from hookonce.receiver.ledger.database import round_trip
from hookonce.receiver.ledger.maintenance import lost_events, partitions, retention
from hookonce.receiver.ledger.queries import (
    body_search,
    choices,
    event_details,
    events,
    handler_stats,
    needles,
    run_outcomes,
)
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import events as event_replays
from hookonce.receiver.ledger.runs import due_rows, ends, ignored, leases, parking, takeover
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import (
    activity,
    backlog,
    event_counts,
    redeliveries,
    source_activity,
    totals,
)
from tests.support import claiming
from tests.support.new_event import new_event

ROWS = 20_000
OPEN = 4_000
"""The newest of them: half is due, a quarter was tried and waits, the rest waits for a handler that is paused."""
SPAN = timedelta(minutes=1)
FILL = f"""
INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed, received_at)
SELECT 'stripe', 'stripe', 'evt_' || md5(n::text), 'invoice.paid', sha256(n::text::bytea), n % 2 = 0,
       now() - ({ROWS} - n) * interval '5 seconds'
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO hookonce.bodies (event, received_at, url, headers, body, is_element)
SELECT id, received_at, '/hooks/stripe', '{{}}', '', false FROM hookonce.events;
INSERT INTO hookonce.queue (event, received_at, source, type, handler, attempts, due_at, waits)
SELECT id, received_at, source, type, CASE WHEN id % 4 = 2 THEN 'credit' WHEN id % 4 = 3 THEN 'mail' END,
       (id % 4 = 2)::int, now() + CASE WHEN id % 4 = 2 THEN interval '1 hour' ELSE '0' END,
       CASE WHEN id % 500 = 0 THEN 'held' WHEN id % 4 = 3 THEN 'handler' END
FROM hookonce.events WHERE id > {ROWS - OPEN};
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
SELECT id, CASE WHEN id % 100 = 1 THEN '' ELSE 'credit' END, 1,
       CASE id % 100 WHEN 0 THEN 'dead' WHEN 1 THEN 'ignored' ELSE 'done' END, 1, received_at
FROM hookonce.events WHERE id <= {ROWS - OPEN};
INSERT INTO hookonce.runs (event, handler, cycle, status, is_last, attempts, finished_at)
SELECT id, 'credit', 0, 'dead', false, 1, received_at FROM hookonce.events WHERE id % 100 = 7;
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error) SELECT id, 'credit', 1, 1, ''
FROM hookonce.events;
INSERT INTO hookonce.arrivals (key, event, at) SELECT sha256(id::text::bytea), id, received_at FROM hookonce.events;
INSERT INTO hookonce.redeliveries SELECT id, 1 FROM hookonce.events;
ANALYZE
"""  # noqa: S608  constants of this module
TABLES = (
    "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'hookonce'::regnamespace AND relkind = 'r'"
)
READS_THE_QUEUE = (partitions._IS_NEEDED,)  # noqa: SLF001
"""What is made to read a whole queue: before a day of bodies is dropped."""


class Recorded(psycopg.Cursor):
    """A cursor that remembers what was asked."""

    seen: dict = {}  # noqa: RUF012  one for all cursors of a test

    def _execute_gen(self, query, params=None, **options):  # what a loop waits for, too
        text = query.decode() if isinstance(query, bytes) else query
        if re.match(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b", text):
            self.seen[text] = params
        return super()._execute_gen(query, params, **options)


def handlers():
    """A worker with one handler for everything."""
    registry = Registry()
    registry.add(
        Handler("credit", "stripe", "*", print, 3, (timedelta(0), timedelta(0)), timedelta(seconds=5))
    )
    return registry


@pytest.fixture(scope="module")
def ledger(fresh_database):
    with fresh_database() as url, psycopg.connect(url, autocommit=True) as connection:
        for ago in range(3):
            partitions.make_partition(connection, (datetime.now(UTC) - timedelta(days=ago)).date())
        # Plans go by these rows, as they are analyzed here: not by when autovacuum has looked at what tests changed.
        for (table,) in connection.execute(TABLES).fetchall():
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
        connection.execute(FILL)
        event_counts.recount(connection)
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute("SET random_page_cost = 1.1")  # as if the tables were larger than they are
        yield connection


@pytest.fixture
def recorder(ledger, monkeypatch):
    def recorded(connection, statements, **options):
        Recorded.seen |= {query: values for query, values in statements if values}
        return round_trip.round_trip(connection, statements, **options)

    monkeypatch.setattr(ends, "round_trip", recorded)
    # To the last slice, however busy the machine: the newest one holds the whole queue, which is then read as such.
    monkeypatch.setattr(lost_events, "TURN_LENGTH", timedelta(hours=1))
    ledger.cursor_factory = Recorded
    Recorded.seen = {}
    yield ledger
    ledger.cursor_factory = psycopg.Cursor


def receive(connection):
    store.store(connection, [new_event(f"new_{n}", body=b"%d" % n, id_is_signed=False) for n in range(5)])
    store.store(connection, [new_event("new_1", body=b"1"), new_event("new_2", body=b"other")])
    redeliveries.add_redeliveries(connection, {("stripe", "new_1"): 2})


def work(connection):
    takers = handlers()
    claim = claiming.claim(connection, takers, slots=4, limit=10)
    first, second, third = claim.runs[:3]
    claiming.end(connection, first, AttemptResult("done", result=1))
    claiming.end(connection, second, AttemptResult("waiting", error="no", delay=SPAN))
    leases.renew(connection, {third.token})
    leases.release(connection, claim.runs[3:])
    claiming.claim(connection, takers, ids=[run.event.id for run in claim.runs[3:5]])
    cursor = DueCursor()
    for _ in range(3):  # of one kind all, so that one look is for what else there is
        claiming.claim(connection, takers, limit=2, cursor=cursor)
    leases.load_body(connection, third.event)
    psycopg.Cursor(connection).execute("UPDATE hookonce.claims SET lease_until = now() - interval '1 s'")
    takeover.take_over(connection)
    claiming.claim_suspect(connection, takers)
    ignored.requeue(connection, takers.matching, SPAN)


def sweep(connection):
    due_rows.is_anything_due(connection)
    id_at_time.first_since(connection, datetime.now(UTC))
    event_counts.advance(connection, event_counts.mark(connection))
    lost_events.look(connection)
    kept = retention.Retention(SPAN * 1500, SPAN * 1500, SPAN, SPAN)
    for _ in retention.RetentionPass(kept, size=100).steps(connection):
        pass


def scrape(connection):
    [(each.source, each.status, each.count) for each in totals.event_sums(connection)]
    backlog.oldest_due(connection)
    totals.conflicts(connection)


def look(connection):
    backlog.due(connection)
    dead = [row.id for row in events.events(connection, Filter(status="dead"), 1000)]
    died = run_outcomes.outcomes(connection, dead)
    event_details.detail(connection, died[0].event, OFF)
    source_activity.last_seen(connection)


def browse(connection):
    """What the console's lists ask of a part of the ledger."""
    middle = ROWS // 2
    needle = needles.read("$.a=b")
    short = timedelta(0)
    with connection.transaction(force_rollback=True):
        events.newest(connection, Filter(run_by="credit"), 5, middle, short)
        wanted = Filter(source="stripe", type="invoice.paid", status="done")
        events.newest(connection, wanted, 1, middle, short)
        rows = events.oldest_after(connection, Filter(status="dead"), 5, middle, short)
        run_outcomes.outcomes(connection, [row.id for row in rows])
        body_search.search(connection, OFF, Filter(), needle, limit=5, before=middle, budget=short)
        choices.choices(connection)
        handler_stats.handlers(connection)


def list_by_status(connection):
    with connection.transaction():
        psycopg.Cursor(connection).execute("SET LOCAL plan_cache_mode = auto")  # these are never prepared
        for status in EventStatus:
            list(events.events(connection, Filter(status=status), limit=5))
            list(events.events(connection, Filter(status=status, source="stripe"), limit=5, before=ROWS - 10))
            events.oldest_after(connection, Filter(status=status), 5, 10, SPAN)


def replay(connection):
    with connection.transaction(force_rollback=True):
        numbers = [row.id for row in events.events(connection, Filter(status="dead"), limit=5)]
        list(event_replays.replay(connection, numbers, "test", again=True))


def count(connection):
    connection.execute("TRUNCATE hookonce.activity")
    connection.execute(
        "INSERT INTO hookonce.activity "
        "SELECT 1, date_trunc('minute', now()) - n * interval '1 minute', '', 'filled', %s "
        "FROM generate_series(5, 20) AS n",
        [ROWS - 200],
    )
    assert activity.fill(connection)
    backlog.due(connection)


def wait(connection):
    """Park and un-park a few: many among so few rows are read quicker without an index."""
    with connection.transaction(force_rollback=True):
        psycopg.Cursor(connection).execute(
            "UPDATE hookonce.queue SET due_at = now() + interval '1 h' WHERE due_at <= now() AND event < %s",
            [ROWS - 30],
        )
        pauses.pause(connection, "handler", "credit", "test")
        claiming.claim(connection, handlers(), limit=10)
        parking.unpark_left(connection)
        pauses.resume(connection, "handler", "credit", "test")
        pauses.pause(connection, "source", "stripe", "test")
        claiming.claim(connection, handlers(), limit=10)
        parking.park_rows(connection)
        list(events.events(connection, Filter(status="received"), limit=10))
        pauses.resume(connection, "source", "stripe", "test")


def plans(connection, query, params):
    """Give the nodes of the plan for these parameters, and of the one for any: what is prepared gets either."""
    yield from nodes(connection.execute("EXPLAIN (FORMAT JSON) " + query, params).fetchone()[0][0]["Plan"])
    converted = psycopg._queries.PostgresQuery(psycopg.adapt.Transformer(connection))  # noqa: SLF001
    converted.convert(query, params)
    if converted.types:
        types = ", ".join("unknown" if oid == 0 else f"{oid}::regtype" for oid in converted.types)
        types = connection.execute(
            f"SELECT concat_ws(', ', {types.replace('unknown', repr('unknown'))})"
        ).fetchone()[0]
        raw = psycopg.RawCursor(connection)
        raw.execute(f"PREPARE anything ({types}) AS ".encode() + converted.query)
        nothing = ", ".join("NULL" for _ in converted.types)
        rows = raw.execute(f"EXPLAIN (FORMAT JSON) EXECUTE anything ({nothing})").fetchone()[0]
        raw.execute("DEALLOCATE anything")
        yield from nodes(rows[0]["Plan"])


def nodes(plan):
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def scans(connection, task, statements):
    """Give the sequential scans of large tables, with their statements, and the indexes that are used."""
    large = {
        row[0]
        for row in connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relpages > 50 AND relname !~ '^pg_'"
        )
    }
    sequential, used = set(), set()
    # Of a thousand rows that are taken at a time: they are few of a large table, though many of these here.
    for way in ("hashjoin", "mergejoin"):
        connection.execute(f"SET enable_{way} = {'off' if task is wait else 'on'}")
    for query, params in statements.items():
        for node in plans(connection, query, params):
            table = node["Relation Name"] if node["Node Type"] == "Seq Scan" else None
            if table in large and not (table == "queue" and any(part in query for part in READS_THE_QUEUE)):
                sequential.add((table, query))
            used.add(re.sub(r"bodies_\d+", "bodies", node.get("Index Name", "")))
    return sequential, used


@pytest.mark.parametrize(
    ("task", "indexes"),
    [
        (receive, {"events_source_event_id_key", "events_repeat"}),
        (work, {"queue_due", "queue_pkey", "events_pkey", "bodies_pkey"}),
        (sweep, {"queue_due", "events_pkey", "queue_pkey", "runs_pkey", "arrivals_at"}),
        (wait, {"queue_due", "queue_waits", "queue_pkey"}),
        (scrape, {"queue_due"}),
        (look, {"runs_dead", "queue_pkey", "runs_pkey", "events_pkey", "events_repeat_of"}),
        (browse, {"events_pkey", "bodies_pkey", "runs_pkey", "queue_pkey", "runs_dead"}),
        (list_by_status, {"queue_pkey", "queue_waits", "runs_dead", "runs_ignored", "runs_pkey"}),
        (replay, {"queue_pkey", "runs_pkey", "events_pkey"}),
        (count, {"queue_due", "events_pkey", "runs_finished"}),
    ],
)
def test_statement_uses_an_index_on_a_ledger_of_some_size(ledger, recorder, task, indexes):
    task(recorder)
    ledger.cursor_factory = psycopg.Cursor

    sequential, used = scans(ledger, task, Recorded.seen)

    assert sequential == set()
    assert indexes <= used


@pytest.mark.parametrize(
    ("task", "index"),
    [
        (work, "queue_due"),
        (work, "queue_pkey"),
        (wait, "queue_waits"),
        (receive, "events_repeat"),
        (scrape, "queue_due"),
        (look, "events_repeat_of"),
        (list_by_status, "queue_pkey"),
        (list_by_status, "runs_pkey"),
        (replay, "runs_pkey"),
        (count, "runs_finished"),
        (sweep, "events_pkey"),
        (sweep, "arrivals_at"),
        (browse, "events_pkey"),
    ],
)
def test_plans_tell_when_an_index_is_missing(ledger, recorder, task, index):
    task(recorder)
    ledger.cursor_factory = psycopg.Cursor

    with ledger.transaction(force_rollback=True):
        table = index.split("_", maxsplit=1)[0]
        ledger.execute(
            f"ALTER TABLE hookonce.{table} DROP CONSTRAINT {index} CASCADE"
            if "pkey" in index
            else f"DROP INDEX hookonce.{index}"
        )
        sequential, _ = scans(ledger, task, Recorded.seen)

    assert sequential


def test_claim_and_what_takes_an_event_in_are_planned_once(database_url):
    again = "SELECT statement FROM pg_prepared_statements WHERE custom_plans > 0"
    receiver, _ = deduplication._connect(database_url)  # noqa: SLF001
    with receiver, psycopg.connect(database_url, autocommit=True) as worker:
        for number in range(20):
            store.store(receiver, [new_event(f"evt_{number}")])
            claiming.claim(worker, handlers())

        for connection in (receiver, worker):
            assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() > (0,)
            assert connection.execute(again).fetchall() == []
