"""What PostgreSQL would do for each statement of receivers, workers and sweeps, with a ledger of some size."""

import re
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import id_at_time, pauses, redeliveries, store
from hookonce.receiver.ledger.database import round_trip
from hookonce.receiver.ledger.maintenance import partitions, retention
from hookonce.receiver.ledger.queries import (
    body_search,
    choices,
    dead_letters,
    event_pages,
    events,
    needles,
    run_outcomes,
)
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.runs import claims, parking, run_end, transitions
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.runs.run_end import AttemptResult
from hookonce.receiver.ledger.stats import (
    activity,
    backlog,
    event_counts,
    source_activity,
    totals,
)
from tests.support.new_event import new_event

ROWS = 20_000
SPAN = timedelta(minutes=1)
FILL = f"""
INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed, status, due_at, received_at)
SELECT 'stripe', 'stripe', 'evt_' || md5(n::text), 'invoice.paid', sha256(n::text::bytea), n % 2 = 0,
       CASE WHEN n % 100 = 0 THEN 'dead' WHEN n % 100 = 1 THEN 'ignored' WHEN n > {ROWS} - 300 THEN 'received'
            ELSE 'done' END,
       CASE WHEN n > {ROWS} - 300 AND n % 100 > 1 THEN now() END,
       now() - ({ROWS} - n) * interval '5 seconds'
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO hookonce.bodies (event, received_at, url, headers, body, is_element)
SELECT id, received_at, '/hooks/stripe', '{{}}', '', false FROM hookonce.event_states;
INSERT INTO hookonce.runs (event, handler, status, attempts, finished_at)
SELECT id, 'credit', 'done', 1, received_at FROM hookonce.event_states WHERE status = 'done';
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error) SELECT id, 'credit', 1, 1, ''
FROM hookonce.event_states;
ANALYZE
"""  # noqa: S608  constants of this module


class Recorded(psycopg.Cursor):
    """A cursor that remembers what was asked."""

    seen: dict = {}  # noqa: RUF012  one for all cursors of a test

    def execute(self, query, params=None, **options):
        text = query.decode() if isinstance(query, bytes) else query
        if re.match(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b", text):
            self.seen[text] = params
        return super().execute(query, params, **options)


class Handlers:
    """A worker with one handler for everything, slow or not."""

    name, attempts, timeout = "credit", 3, timedelta(seconds=5)
    limit, is_long, batch = None, False, None

    def matching(self, *_):
        return [self]

    def named(self, _):
        return self

    def is_slow(self, *_):
        return False


@pytest.fixture(scope="module")
def ledger(fresh_database):
    with fresh_database() as url, psycopg.connect(url, autocommit=True) as connection:
        for ago in range(3):
            partitions.make_partition(connection, (datetime.now(UTC) - timedelta(days=ago)).date())
        connection.execute(FILL)
        connection.execute("SET plan_cache_mode = force_generic_plan")
        yield connection


@pytest.fixture
def recorder(ledger, monkeypatch):
    def recorded(connection, statements, **options):
        Recorded.seen |= {query: values for query, values in statements if values}
        return round_trip.round_trip(connection, statements, **options)

    monkeypatch.setattr(run_end, "round_trip", recorded)
    ledger.cursor_factory = Recorded
    Recorded.seen = {}
    yield ledger
    ledger.cursor_factory = psycopg.Cursor


def receive(connection):
    store.store(connection, [new_event(f"new_{n}", body=b"%d" % n, id_is_signed=False) for n in range(5)])
    store.store(connection, [new_event("new_1", body=b"1"), new_event("new_2", body=b"other")])
    redeliveries.add_redeliveries(connection, {("stripe", "new_1"): 2})


def work(connection):
    claim = claims.claim(connection, Handlers(), budget=SPAN)
    first, second, third = claim.runs[:3]
    run_end.end(connection, first, AttemptResult("done", result=1), second)
    run_end.end(connection, second, AttemptResult("waiting", error="no", delay=SPAN), third)
    transitions.release(connection, claim.runs[3:])
    claims.claim(connection, Handlers(), budget=SPAN, ids=[run.event.id for run in claim.runs[3:5]])
    cursor = DueCursor()
    for _ in range(3):  # of one kind all, so that one look is for what else there is
        claims.claim(connection, Handlers(), budget=SPAN, limit=2, cursor=cursor)
    transitions.load_body(connection, third.event)
    transitions.requeue_ignored(connection, Handlers(), SPAN)


def sweep(connection):
    claims.is_anything_due(connection)
    id_at_time.first_since(connection, datetime.now(UTC))
    event_counts.advance(connection, event_counts.mark(connection))
    kept = retention.Retention(SPAN * 1500, SPAN * 1500, SPAN, SPAN)
    for _ in retention.RetentionPass(kept, size=100).steps(connection):
        pass


def scrape(connection):
    totals.events_by_status(connection)
    backlog.oldest_due(connection)
    totals.conflicts(connection)


def look(connection):
    backlog.waiting(connection)
    deaths = dead_letters.deaths(connection)
    events.detail(connection, deaths[0].event, OFF)
    source_activity.last_seen(connection)


def browse(connection):
    """What the console's lists ask of a part of the ledger."""
    middle = ROWS // 2
    needle = needles.read("$.a=b")
    short = timedelta(0)
    with connection.transaction(force_rollback=True):
        event_pages.newest(connection, Filter(run_by="credit"), 5, middle, short)
        rows = event_pages.oldest_after(connection, Filter(status="dead"), 5, middle, short)
        run_outcomes.outcomes(connection, [row.id for row in rows])
        body_search.search(connection, OFF, Filter(), needle, limit=5, before=middle, budget=short)
        choices.choices(connection)
        backlog.oldest_due_by_source(connection)


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
            "UPDATE hookonce.events SET due_at = now() + interval '1 h' WHERE due_at <= now() AND id < %s",
            [ROWS - 30],
        )
        pauses.pause(connection, "handler", "credit", "test")
        claims.claim(connection, Handlers(), budget=SPAN)
        parking.unpark_left(connection)
        pauses.resume(connection, "handler", "credit", "test")
        pauses.pause(connection, "source", "stripe", "test")
        claims.claim(connection, Handlers(), budget=SPAN)
        parking.park_sources(connection)
        list(events.events(connection, Filter(status="received"), limit=10))
        pauses.resume(connection, "source", "stripe", "test")


def plans(connection, query, params):
    """Give the nodes of the plan for these parameters, and of the one for any: what is prepared gets either."""
    yield from nodes(connection.execute("EXPLAIN (FORMAT JSON) " + query, params).fetchone()[0][0]["Plan"])
    if params:
        converted = psycopg._queries.PostgresQuery(psycopg.adapt.Transformer(connection))  # noqa: SLF001
        converted.convert(query, params)
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


def scans(connection, statements):
    """Give the sequential scans of large tables, with their statements, and the indexes that are used."""
    large = {
        row[0]
        for row in connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relpages > 50 AND relname !~ '^pg_'"
        )
    }
    sequential, used = set(), set()
    for query, params in statements.items():
        for node in plans(connection, query, params):
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] in large:
                sequential.add((node["Relation Name"], query))
            used.add(re.sub(r"bodies_\d+", "bodies", node.get("Index Name", "")))
    return sequential, used


@pytest.mark.parametrize(
    ("task", "indexes"),
    [
        (receive, {"events_source_event_id_key", "events_repeat"}),
        (work, {"events_due", "events_pkey", "runs_pkey", "bodies_pkey", "events_received"}),
        (sweep, {"events_due", "events_pkey", "events_attention", "events_parked_received"}),
        (wait, {"events_due", "events_pkey", "runs_pkey", "events_parked", "runs_parked"}),
        (scrape, {"events_due", "events_pkey", "events_attention"}),
        (look, {"events_attention", "events_due", "events_pkey", "events_repeat_of"}),
        (browse, {"events_pkey", "bodies_pkey", "runs_pkey", "events_attention"}),
        (count, {"events_due", "events_pkey", "runs_finished"}),
    ],
)
def test_statement_uses_an_index_on_a_ledger_of_some_size(ledger, recorder, task, indexes):
    task(recorder)
    ledger.cursor_factory = psycopg.Cursor

    sequential, used = scans(ledger, Recorded.seen)

    assert sequential == set()
    assert indexes <= used


@pytest.mark.parametrize(
    ("task", "index"),
    [
        (work, "events_due"),
        (wait, "events_due"),
        (receive, "events_repeat"),
        (scrape, "events_attention"),
        (look, "events_repeat_of"),
        (count, "runs_finished"),
        (sweep, "events_pkey CASCADE"),
        (browse, "events_pkey CASCADE"),
    ],
)
def test_plans_tell_when_an_index_is_missing(ledger, recorder, task, index):
    task(recorder)
    ledger.cursor_factory = psycopg.Cursor

    with ledger.transaction(force_rollback=True):
        drop = (
            f"DROP INDEX hookonce.{index}"
            if "pkey" not in index
            else f"ALTER TABLE hookonce.events DROP CONSTRAINT {index}"
        )
        ledger.execute(drop)
        sequential, _ = scans(ledger, Recorded.seen)

    assert sequential
