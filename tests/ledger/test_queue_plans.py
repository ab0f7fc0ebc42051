"""Statements that were planned over an empty queue, and are used on a long one."""

import importlib
import pkgutil
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from hookonce.jobs.handlers import Handler, Registry
from hookonce.receiver import ledger
from hookonce.receiver.ledger.database import plans, schema
from hookonce.receiver.ledger.database.round_trip import PreparingConnection
from hookonce.receiver.ledger.runs import ends
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended
from hookonce.receiver.ledger.store import store
from tests.support import claiming
from tests.support.new_event import new_event

LONG = 5_000
KEPT = 8
"""Uses after which PostgreSQL keeps a plan, and some more."""
FILL = f"""
INSERT INTO hookonce.queue (event, received_at, source, type, due_at)
SELECT -n, now(), 'stripe', 'other', now() + interval '1 day' FROM generate_series(1, {LONG}) AS n
"""  # noqa: S608  a constant
READ = """
SELECT pg_stat_force_next_flush(), seq_tup_read FROM pg_stat_user_tables WHERE relid = 'hookonce.queue'::regclass
"""


@pytest.fixture
def worker(database_url):
    with PreparingConnection.connect(database_url) as connection:
        schema.use(connection, schema.USUAL_SCHEMA)
        yield connection


@pytest.fixture
def other(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def work(worker, other):
    registry = Registry()
    registry.add(Handler("h", "stripe", "*", print, 1, (), timedelta(seconds=5)))

    def work(name):
        store(other, [new_event(name)])
        (run,) = claiming.claim(worker, registry).runs
        worker.execute("SELECT 1")
        ends.end(worker, Ended([run], [AttemptResult("done")], timedelta(0)))

    return work


def read_row_by_row(worker):
    """Return how many rows of the queue were read by going through all of it."""
    worker.execute("SELECT pg_stat_force_next_flush()")
    worker.commit()
    return worker.execute(READ).fetchone()[1]


def read_with_plans_of_an_empty_queue(worker, other, work):
    """Return how many rows of a long queue are read by going through all of it."""
    # An analysis of PostgreSQL's own, once the queue is long, would have the plans made anew.
    other.execute("ALTER TABLE hookonce.queue SET (autovacuum_enabled = false)")
    other.execute("DELETE FROM hookonce.queue")
    for _ in range(2):
        other.execute("VACUUM (ANALYZE) hookonce.queue")
        for _ in range(KEPT):
            work(uuid4().hex)
    other.execute(FILL)
    before = read_row_by_row(worker)
    worker.commit()
    work(uuid4().hex)
    worker.commit()
    return read_row_by_row(worker) - before


def test_plans_made_over_an_empty_queue_read_no_long_one(worker, other, work):
    assert read_with_plans_of_an_empty_queue(worker, other, work) < LONG


@pytest.mark.parametrize("mistake", ["_FOR_CLAIM", "FOR_ONE_END"])
def test_plan_by_the_size_of_the_queue_is_noticed(worker, other, work, monkeypatch, mistake):
    """A planted mistake. PostgreSQL may plan anew for reasons of its own, as after a reset of its caches."""
    plain = "SELECT 1"
    monkeypatch.setattr(plans, mistake, plain if mistake == "_FOR_CLAIM" else (plain.encode(),))

    assert any(read_with_plans_of_an_empty_queue(worker, other, work) >= LONG for _ in range(4))


def read_by(plan, subplan=""):
    """Yield the relations that a plan reads, each with the subplan or the lock that it is beneath."""
    subplan = plan.get("Subplan Name", subplan or plan["Node Type"] * (plan["Node Type"] == "LockRows"))
    if name := plan.get("Relation Name"):
        yield name, subplan
    for each in plan.get("Plans", ()):
        yield from read_by(each, subplan)


def locking_beside_bodies():
    """Yield the statements of the ledger that lock rows and read bodies, with their names."""
    for found in pkgutil.walk_packages(ledger.__path__, f"{ledger.__name__}."):
        if ".migrations" not in found.name:
            for name, value in vars(importlib.import_module(found.name)).items():
                words = [*value.split()] if isinstance(value, str) else [""]
                if words[:1] in (["SELECT"], ["WITH"]) and {"UPDATE", "hookonce.bodies"} <= {*words}:
                    yield pytest.param(value, id=name)


@pytest.mark.parametrize("statement", [*locking_beside_bodies()])
def test_statement_that_locks_rows_reads_partitions_in_no_subplan_and_beneath_no_lock(worker, statement):
    """PostgreSQL 18.4 looks again at a row that changed: what it has chosen of partitions is gone, or of before."""
    given = {
        "ids": [1],
        "handlers": ["h"],
        "word": "batch",
        "sources": ["stripe"],
        "types": ["a"],
        "since": None,
    }
    given |= {"limit": 9, "wait": timedelta(0), "heavy": 9, "most_bytes": 9, "before": datetime.now(UTC)}

    ((found,),) = worker.execute(f"EXPLAIN (FORMAT JSON) {statement}", given)

    read = list(read_by(found[0]["Plan"]))
    assert "bodies" in "".join(dict(read))
    assert not [each for each in read if each[0].startswith("bodies") and each[1]]
