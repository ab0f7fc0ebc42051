import contextlib
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from make import new_event

from receiver import database
from receiver.ledger import desk_bulk, desk_follow, desk_steps
from receiver.ledger.desk import Filter
from receiver.ledger.store import store

DEAD = Filter(status="dead")


@pytest.fixture
def connection(database_url):
    with database.connect(database_url) as connection:
        yield connection


@pytest.fixture
def dead(connection):
    """Five dead events and one done; gives the ids of the dead ones."""
    rows = store(connection, [new_event(f"evt_{n}") for n in range(6)])
    ids = sorted(row.id for row in rows.values())
    connection.execute(
        "INSERT INTO runs (event, handler, status, attempts) SELECT id, 'a', 'dead', 3 FROM events"
    )
    connection.execute("UPDATE events SET status = 'dead', due_at = NULL")
    connection.execute("UPDATE runs SET status = 'done' WHERE event = %s", [ids[-1]])
    connection.execute("UPDATE events SET status = 'done' WHERE id = %s", [ids[-1]])
    return ids[:-1]


def cycles(connection):
    return [row[0] for row in connection.execute("SELECT cycle FROM runs ORDER BY event")]


def test_bulk_replays_each_match_once_in_steps(connection, dead):
    bulk = desk_bulk.start(connection, DEAD, "ops")
    seen = []
    while bulk.ended_at is None:
        bulk, _ = desk_steps.step(connection, bulk.id, 2)
        seen.append((bulk.replayed, bulk.last_event))

    assert seen == [(2, dead[1]), (4, dead[3]), (5, dead[4])]
    assert (bulk.matched, bulk.left_alone, bulk.is_complete) == (5, 0, True)
    assert cycles(connection) == [2, 2, 2, 2, 2, 1]


def test_bulk_leaves_alone_what_died_after_it_began(connection, dead):
    bulk = desk_bulk.start(connection, DEAD, "ops")
    store(connection, [new_event("evt_late")])
    connection.execute("UPDATE events SET status = 'dead', due_at = NULL WHERE event_id = 'evt_late'")

    bulk, _ = desk_steps.step(connection, bulk.id, 100)

    assert (bulk.replayed, bulk.last_event, bulk.is_complete) == (5, dead[-1], True)


def test_bulk_takes_the_oldest_so_many(connection, dead):
    bulk = desk_bulk.start(connection, DEAD, "ops", limit=2)

    bulk, _ = desk_steps.step(connection, bulk.id, 100)

    assert (bulk.matched, bulk.replayed, bulk.last_event) == (2, 2, dead[1])


def test_bulk_keeps_its_filter(connection):
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    wanted = Filter("stripe", "stripe", "a.*", "dead", since, since + timedelta(days=1), "acct", "evt_")

    started = desk_bulk.start(connection, wanted, "ops", 2.5)

    assert desk_bulk.listing(connection) == [started]
    assert (started.wanted, started.rate, started.is_complete) == (wanted, 2.5, True)


def test_bulk_goes_on_where_it_was_stopped(connection, dead):
    bulk = desk_bulk.start(connection, DEAD, "ops")
    desk_steps.step(connection, bulk.id, 2)

    desk_bulk.stop(connection, bulk.id, "ops")
    stopped, _ = desk_steps.step(connection, bulk.id, 2)
    assert (stopped.replayed, stopped.is_complete) == (2, False)

    assert desk_bulk.go_on(connection, bulk.id, "ops")
    assert desk_steps.step(connection, bulk.id, 100)[0].replayed == 5
    assert not desk_bulk.go_on(connection, bulk.id, "ops")
    assert max(cycles(connection)) == 2
    assert dead


def test_bulk_is_audited_when_it_begins_stops_and_goes_on(connection, dead):
    bulk = desk_bulk.start(connection, DEAD, "ann", 2.0)
    desk_bulk.stop(connection, bulk.id, "bob")
    desk_bulk.go_on(connection, bulk.id, "eve")

    rows = connection.execute("SELECT who, action, subject, detail FROM audit ORDER BY id").fetchall()

    subject = f"bulk replay {bulk.id}"
    assert rows == [
        ("ann", "bulk replay", subject, {"filter": {"status": "dead"}, "matched": len(dead), "rate": 2.0}),
        ("bob", "stop", subject, {}),
        ("eve", "go on", subject, {}),
    ]


@pytest.mark.usefixtures("dead")
def test_bulk_that_runs_or_has_ended_is_left_as_it_is(connection):
    driven = desk_bulk.start(connection, DEAD, "ann", driver="a test")
    ended = desk_bulk.start(connection, Filter(status="held"), "ann")

    assert not desk_bulk.go_on(connection, driven.id, "eve")
    assert desk_bulk.stop(connection, ended.id, "bob")

    assert desk_bulk.get(connection, ended.id) == ended
    assert connection.execute("SELECT driver FROM bulk_replays WHERE ended_at IS NULL").fetchall() == [
        ("a test",)
    ]
    assert {row[0] for row in connection.execute("SELECT who FROM audit")} == {"ann"}


@pytest.mark.usefixtures("dead")
def test_bulk_loses_and_repeats_nothing_when_its_driver_is_killed(connection, database_url):
    bulk = desk_bulk.start(connection, DEAD, "ops", driver="a test")
    script = (
        "import os, signal, sys\n"
        "from receiver import database\n"
        "from receiver.ledger import desk_steps\n"
        "connection = database.connect(sys.argv[1])\n"
        "desk_steps.step(connection, int(sys.argv[2]), 2, driver='a test')\n"
        "connection.execute('BEGIN')\n"
        "desk_steps.step(connection, int(sys.argv[2]), 2, driver='a test')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, database_url, str(bulk.id)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert desk_steps.advance(connection) == 0  # its driver may still be there

    connection.execute("UPDATE bulk_replays SET driven_at = now() - interval '11 seconds'")

    assert desk_steps.advance(connection) == 3
    assert cycles(connection) == [2, 2, 2, 2, 2, 1]


@pytest.mark.usefixtures("dead")
def test_sweep_takes_the_steps_at_the_rate(connection):
    bulk = desk_bulk.start(connection, DEAD, "ops", 1.0)
    assert desk_steps.advance(connection) == 0

    connection.execute("UPDATE bulk_replays SET driven_at = now() - interval '2.5 seconds'")
    assert desk_steps.advance(connection) == 2

    connection.execute("UPDATE bulk_replays SET driven_at = now() - interval '1 hour'")
    assert desk_steps.advance(connection) == 3
    assert desk_bulk.get(connection, bulk.id).ended_at


@pytest.mark.usefixtures("dead")
def test_two_sweeps_take_no_step_twice(connection, database_url):
    bulk = desk_bulk.start(connection, DEAD, "ops")
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(database.connect(database_url))
        stack.enter_context(other.transaction())
        desk_steps.step(other, bulk.id, 2)

        assert desk_steps.advance(connection) == 0

    assert desk_steps.advance(connection) == 3


def test_progress_tells_what_succeeded_and_what_died(connection, dead):
    bulk = desk_bulk.start(connection, DEAD, "ops")
    desk_steps.step(connection, bulk.id, 100)
    open_ = desk_follow.progress(connection, bulk.id)

    connection.execute("UPDATE events SET status = 'done' WHERE id = ANY(%s)", [dead[:3]])
    connection.execute("UPDATE events SET status = 'dead' WHERE id = %s", [dead[3]])
    desk_follow.look(connection)

    assert open_ == desk_follow.Progress(0, 0, 5)
    assert desk_follow.progress(connection, bulk.id) == desk_follow.Progress(3, 1, 1)


def test_progress_looks_no_more_at_what_has_ended(connection, dead):
    bulk = desk_bulk.start(connection, DEAD, "ops")
    desk_steps.step(connection, bulk.id, 100)
    connection.execute("UPDATE events SET status = 'done' WHERE id = ANY(%s)", [dead])
    desk_follow.look(connection, bulk.id)

    connection.execute("UPDATE events SET status = 'dead'")
    desk_follow.look(connection)

    assert desk_follow.progress(connection, bulk.id) == desk_follow.Progress(5, 0, 0)


def test_bulk_says_what_it_would_replay(connection, dead):
    assert desk_bulk.counts(connection, DEAD) == [("invoice.paid", "dead", len(dead))]
    assert desk_bulk.counts(connection, replace(DEAD, type="other.*")) == []
