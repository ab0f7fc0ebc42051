import contextlib
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import TypeAdapter

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import (
    bulk as bulk_replays,
)
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import end_events

DEAD = Filter(status="dead")


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def dead(connection):
    """Five dead events and one done; gives the ids of the dead ones."""
    rows = store(connection, [new_event(f"evt_{n}") for n in range(6)])
    ids = sorted(row.id for row in rows.values())
    end_events(connection, "dead", ids[:-1], attempts=3)
    end_events(connection, "done", ids[-1:])
    return ids[:-1]


def stepped(connection, bulk, most):
    bulk_replays.step(connection, bulk.id, most)
    return bulk_replays.get(connection, bulk.id)


def cycles(connection):
    return [row[0] for row in connection.execute("SELECT cycle FROM hookonce.run_states ORDER BY event")]


def test_bulk_replays_each_match_once_in_steps(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ops")
    seen = []
    while bulk.ended_at is None:
        bulk = stepped(connection, bulk, 2)
        seen.append((bulk.replayed, bulk.last_event))

    assert seen == [(2, dead[1]), (4, dead[3]), (5, dead[4])]
    assert (bulk.matched, bulk.left_alone, bulk.state) == (5, 0, "complete")
    assert cycles(connection) == [2, 2, 2, 2, 2, 1]


def test_bulk_leaves_alone_what_died_after_it_began(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ops")
    late = store(connection, [new_event("evt_late")])
    end_events(connection, "dead", [row.id for row in late.values()])

    bulk = stepped(connection, bulk, 100)

    assert (bulk.replayed, bulk.last_event, bulk.state) == (5, dead[-1], "complete")


def test_bulk_takes_the_oldest_so_many(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ops", limit=2)

    bulk = stepped(connection, bulk, 100)

    assert (bulk.matched, bulk.replayed, bulk.last_event) == (2, 2, dead[1])


def test_bulk_keeps_its_filter(connection):
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    wanted = Filter(
        source="stripe",
        provider="stripe",
        type="a.*",
        status="dead",
        since=since,
        until=since + timedelta(days=1),
        account="acct",
        event_id="evt_",
    )

    started = bulk_replays.start(connection, wanted, "ops", 2.5)

    assert bulk_replays.listing(connection) == [started]
    assert TypeAdapter(Filter).validate_python(started.filter) == wanted
    assert (started.rate, started.state) == (2.5, "complete")


def test_bulk_goes_on_where_it_was_stopped(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ops")
    bulk_replays.step(connection, bulk.id, 2)

    bulk_replays.stop(connection, bulk.id, "ops")
    stopped = stepped(connection, bulk, 2)
    assert (stopped.replayed, stopped.state) == (2, "stopped")

    bulk_replays.go_on(connection, bulk.id, "ops")
    assert stepped(connection, bulk, 100).replayed == 5
    bulk_replays.go_on(connection, bulk.id, "ops")
    assert bulk_replays.step(connection, bulk.id) is None
    assert max(cycles(connection)) == 2
    assert dead


def test_bulk_is_audited_when_it_begins_stops_and_goes_on(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ann", 2.0)
    bulk_replays.stop(connection, bulk.id, "bob")
    bulk_replays.go_on(connection, bulk.id, "eve")

    rows = connection.execute(
        "SELECT who, action, subject, detail FROM hookonce.audit ORDER BY id"
    ).fetchall()

    subject = f"bulk replay {bulk.id}"
    assert rows == [
        ("ann", "bulk replay", subject, {"filter": {"status": "dead"}, "matched": len(dead), "rate": 2.0}),
        ("bob", "stop", subject, {}),
        ("eve", "go on", subject, {}),
    ]


def test_bulk_writes_two_lines_of_audit_however_many_it_replays(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ann")
    while not bulk_replays.get(connection, bulk.id).ended_at:
        bulk_replays.step(connection, bulk.id, 2)

    rows = connection.execute(
        "SELECT who, action, subject, detail FROM hookonce.audit ORDER BY id"
    ).fetchall()

    assert [row[:3] for row in rows] == [
        ("ann", "bulk replay", f"bulk replay {bulk.id}"),
        ("ann", "end", f"bulk replay {bulk.id}"),
    ]
    assert rows[1][3] == {"replayed": len(dead), "left_alone": 0}


@pytest.mark.usefixtures("dead")
def test_bulk_that_runs_or_has_ended_is_left_as_it_is(connection):
    driven = bulk_replays.start(connection, DEAD, "ann", driver="a test")
    ended = bulk_replays.start(connection, Filter(status="held"), "ann")

    bulk_replays.go_on(connection, driven.id, "eve")
    bulk_replays.stop(connection, ended.id, "bob")

    assert bulk_replays.get(connection, ended.id) == ended
    assert connection.execute(
        "SELECT driver FROM hookonce.bulk_replays WHERE ended_at IS NULL"
    ).fetchall() == [("a test",)]
    assert {row[0] for row in connection.execute("SELECT who FROM hookonce.audit")} == {"ann"}


@pytest.mark.usefixtures("dead")
def test_bulk_loses_and_repeats_nothing_when_its_driver_is_killed(connection, database_url):
    bulk = bulk_replays.start(connection, DEAD, "ops", driver="a test")
    script = (
        "import os, signal, sys\n"
        "from hookonce.receiver.ledger.database import connections\n"
        "from hookonce.receiver.ledger.replay import bulk\n"
        "connection = connections.connect(sys.argv[1])\n"
        "bulk.step(connection, int(sys.argv[2]), 2, driver='a test')\n"
        "connection.execute('BEGIN')\n"
        "bulk.step(connection, int(sys.argv[2]), 2, driver='a test')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, database_url, str(bulk.id)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert bulk_replays.advance(connection) == 0  # its driver may still be there

    connection.execute("UPDATE hookonce.bulk_replays SET driven_at = now() - interval '11 seconds'")

    assert bulk_replays.advance(connection) == 3
    assert cycles(connection) == [2, 2, 2, 2, 2, 1]


@pytest.mark.usefixtures("dead")
def test_sweep_takes_the_steps_at_the_rate(connection):
    bulk = bulk_replays.start(connection, DEAD, "ops", 1.0)
    assert bulk_replays.advance(connection) == 0

    connection.execute("UPDATE hookonce.bulk_replays SET driven_at = now() - interval '2.5 seconds'")
    assert bulk_replays.advance(connection) == 2

    connection.execute("UPDATE hookonce.bulk_replays SET driven_at = now() - interval '1 hour'")
    assert bulk_replays.advance(connection) == 3
    assert bulk_replays.get(connection, bulk.id).ended_at


@pytest.mark.usefixtures("dead")
def test_two_sweeps_take_no_step_twice(connection, database_url):
    bulk = bulk_replays.start(connection, DEAD, "ops")
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(connections.connect(database_url))
        stack.enter_context(other.transaction())
        bulk_replays.step(other, bulk.id, 2)

        assert bulk_replays.advance(connection) == 0

    assert bulk_replays.advance(connection) == 3


def progress(connection, bulk):
    found = bulk_replays.get(connection, bulk.id)
    return found.done, found.dead, found.open


def test_progress_tells_what_succeeded_and_what_died(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ops")
    bulk_replays.step(connection, bulk.id, 100)
    open_ = progress(connection, bulk)

    end_events(connection, "done", dead[:3])
    end_events(connection, "dead", dead[3:4])
    bulk_replays.look(connection)

    assert open_ == (0, 0, 5)
    assert progress(connection, bulk) == (3, 1, 1)


def test_progress_looks_no_more_at_what_has_ended(connection, dead):
    bulk = bulk_replays.start(connection, DEAD, "ops")
    bulk_replays.step(connection, bulk.id, 100)
    end_events(connection, "done", dead)
    bulk_replays.look(connection, bulk.id)

    end_events(connection, "dead")
    bulk_replays.look(connection)

    assert progress(connection, bulk) == (5, 0, 0)


def test_bulk_says_what_it_would_replay(connection, dead):
    assert bulk_replays.counts(connection, DEAD) == [("invoice.paid", "dead", len(dead))]
    assert bulk_replays.counts(connection, replace(DEAD, type="other.*")) == []


@pytest.mark.usefixtures("dead")
def test_sweep_takes_a_step_after_a_clock_was_ahead(connection):
    bulk_replays.start(connection, DEAD, "ops", 1.0, driver="somebody")
    connection.execute("UPDATE hookonce.bulk_replays SET driven_at = now() + interval '1 day'")

    assert bulk_replays.advance(connection) == 1
