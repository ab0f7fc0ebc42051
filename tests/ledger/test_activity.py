import threading
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from hookonce.receiver.ledger import rejected
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay.events import replay
from hookonce.receiver.ledger.runs import ignored
from hookonce.receiver.ledger.stats import activity, event_counts, redeliveries, source_activity
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.waiting import PATIENT, at_once

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
AN_HOUR_AGO = datetime.now(UTC) - HOUR


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def deliver(connection, *event_ids, minutes_ago=5, **changes):
    store(connection, [new_event(event_id, **changes) for event_id in event_ids])
    connection.execute(
        "UPDATE hookonce.events SET received_at = date_trunc('minute', now()) - %s WHERE event_id = ANY(%s)",
        [minutes_ago * MINUTE, list(event_ids)],
    )


def finish(connection, event_id, status="done", *, minutes_ago=4, handler="h", is_last=True):
    """Have a run of an event end; with `is_last` nothing else of it is open."""
    connection.execute(
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "SELECT id, %s, 1, %s, 1, date_trunc('minute', now()) - %s FROM hookonce.events WHERE event_id = %s",
        [handler, status, minutes_ago * MINUTE, event_id],
    )
    if is_last:
        connection.execute(
            "DELETE FROM hookonce.queue USING hookonce.events e WHERE queue.event = e.id AND e.event_id = %s",
            [event_id],
        )


def fill(connection):
    filled = 0
    while step := activity.fill(connection):
        filled += step
    return filled


def counted(connection, minutes=1):
    rows = connection.execute(
        "SELECT source, what, sum(count)::int FROM hookonce.activity WHERE minutes = %s AND what "
        "NOT IN ('filled', 'last') "
        "GROUP BY source, what ORDER BY source, what",
        [minutes],
    )
    return rows.fetchall()


def test_activity_counts_what_came_and_ended(connection):
    deliver(connection, "a", "b", "c")
    deliver(connection, "x", source="github")
    finish(connection, "a")
    finish(connection, "b", "dead")
    finish(connection, "c", "ignored", handler="")

    fill(connection)

    assert counted(connection) == [
        ("github", "accepted", 1),
        ("stripe", "accepted", 3),
        ("stripe", "dead", 1),
        ("stripe", "done", 1),
        ("stripe", "ignored", 1),
    ]


def test_activity_counts_an_event_once_when_its_last_run_ends(connection):
    deliver(connection, "a")
    finish(connection, "a", handler="one", minutes_ago=4)
    finish(connection, "a", handler="two", minutes_ago=2)

    fill(connection)

    done = connection.execute(
        "SELECT now() - at FROM hookonce.activity WHERE minutes = 1 AND what = 'done'"
    ).fetchall()
    assert len(done) == 1
    assert done[0][0] < 3 * MINUTE


def test_activity_does_not_count_an_event_that_waits_for_another_run(connection):
    deliver(connection, "a")
    finish(connection, "a", is_last=False)

    fill(connection)

    assert counted(connection) == [("stripe", "accepted", 1)]


def test_activity_counts_an_unreadable_element_as_dead(connection):
    deliver(connection, "a", unreadable="bad_body: it is none")
    connection.execute("UPDATE hookonce.runs SET finished_at = now() - interval '5 minutes'")

    fill(connection)

    assert counted(connection) == [("stripe", "accepted", 1), ("stripe", "dead", 1)]


@pytest.mark.parametrize("is_counted_before", [False, True])
@pytest.mark.parametrize(("status", "handler"), [("dead", "h"), ("ignored", "")])
def test_activity_counts_an_end_that_a_replay_took_away(connection, is_counted_before, status, handler):
    deliver(connection, "a", "b")
    finish(connection, "a", status, handler=handler)
    finish(connection, "b", status, handler=handler, minutes_ago=3)
    if is_counted_before:
        fill(connection)

    replayed = list(replay(connection, ids(connection), "a test", again=True))
    fill(connection)

    assert len(replayed) == 2
    assert ("stripe", status, 2) in counted(connection)
    assert ("stripe", status, 2) in counted(connection, minutes=0)


def test_activity_counts_an_ignored_event_that_a_worker_took_up_since(connection):
    deliver(connection, "a")
    finish(connection, "a", "ignored", handler="")

    ignored.requeue(connection, lambda *_: [None], HOUR)
    fill(connection)

    assert ("stripe", "ignored", 1) in counted(connection)
    assert event_counts.gone(connection) == {}


def test_rates_show_an_end_that_a_replay_took_away(connection):
    deliver(connection, "a")
    finish(connection, "a", "dead", minutes_ago=0)
    list(replay(connection, ids(connection), "a test", again=True))

    found = activity.rates(connection, AN_HOUR_AGO, MINUTE)

    assert [(each.what, each.number) for each in found] == [("accepted", 1), ("dead", 1)]


def test_ends_are_counted_once_while_replays_and_sweeps_race(connection, database_url):
    names = [f"evt_{n}" for n in range(40)]
    deliver(connection, *names)
    for name in names:
        finish(connection, name, "dead")
    barrier = threading.Barrier(3, timeout=20)

    def replays(mine):
        with connections.connect(database_url, **PATIENT) as own:
            barrier.wait()
            for each in mine:
                list(replay(own, [each], "a test", again=True))

    def fills():
        with connections.connect(database_url, **PATIENT) as own:
            barrier.wait()
            fill(own)

    every = ids(connection)
    at_once(*(partial(replays, every[n::2]) for n in range(2)), fills)

    fill(connection)
    assert ("stripe", "dead", len(names)) in counted(connection)


def ids(connection):
    return [row[0] for row in connection.execute("SELECT id FROM hookonce.event_states ORDER BY id")]


def test_activity_leaves_out_the_minute_that_is_not_over(connection):
    deliver(connection, "a", minutes_ago=0)

    assert fill(connection) > 50
    assert counted(connection) == []
    assert fill(connection) <= 1  # a minute may end meanwhile


def test_activity_counts_nothing_twice_from_many_sweeps(connection, database_url):
    def sweep():
        with connections.connect(database_url, **PATIENT) as own:
            barrier.wait()
            for _ in range(10):
                activity.fill(own)

    deliver(connection, "a", "b")
    finish(connection, "a")
    barrier = threading.Barrier(4, timeout=20)
    at_once(*[sweep] * 4)
    fill(connection)

    assert (
        counted(connection)
        == counted(connection, minutes=0)
        == [("stripe", "accepted", 2), ("stripe", "done", 1)]
    )


def test_activity_goes_on_where_it_stopped_after_an_outage(connection):
    fill(connection)
    connection.execute(
        "DELETE FROM hookonce.activity WHERE minutes = 1 AND at > now() - interval '30 minutes'"
    )
    deliver(connection, "a", minutes_ago=25)
    deliver(connection, "b", minutes_ago=40)  # counted before, as nothing

    assert 25 < fill(connection) < 32
    assert counted(connection) == [("stripe", "accepted", 1)]


def test_activity_rolls_minutes_up_by_the_hour(connection):
    deliver(connection, "a", minutes_ago=61)
    connection.execute(
        "INSERT INTO hookonce.activity "
        "VALUES (1, date_trunc('minute', now()) - interval '130 minutes', '', 'filled', 0)"
    )

    fill(connection)

    assert counted(connection, minutes=60) == [("stripe", "accepted", 1)]


def test_activity_forgets_old_minutes_and_hours(connection):
    connection.execute(
        "INSERT INTO hookonce.activity VALUES (1, now() - interval '10 days', 'stripe', 'accepted', 1), "
        "(60, now() - interval '10 days', 'stripe', 'accepted', 1), "
        "(60, now() - interval '70 days', 'stripe', 'accepted', 1), (0, 'epoch', 'stripe', 'accepted', 1), "
        "(1, date_trunc('minute', now()) - interval '70 minutes', '', 'filled', 0)"
    )

    fill(connection)

    assert counted(connection) == []
    assert counted(connection, 60) == counted(connection, 0) == [("stripe", "accepted", 1)]


def test_rates_fold_reasons_and_add_what_is_not_counted_yet(connection):
    deliver(connection, "a", minutes_ago=5)
    fill(connection)
    deliver(connection, "b", minutes_ago=0)
    rejected.add_rejections(connection, [], {("stripe", "stale"): 2, ("stripe", "bad_signature"): 1})
    redeliveries.add_redeliveries(connection, {("stripe", "a"): 3})

    found = activity.rates(connection, AN_HOUR_AGO, MINUTE)

    assert [(count.what, count.number) for count in found if count.what == "accepted"] == [
        ("accepted", 1)
    ] * 2
    assert {count.what: count.number for count in found} == {"accepted": 1, "rejected": 3, "duplicate": 3}
    assert {count.what: count.number for count in activity.totals(connection)} == {
        "accepted": 1,
        "duplicate": 3,
        "rejected.bad_signature": 1,
        "rejected.stale": 2,
    }


def test_rates_by_the_hour_take_hours_and_the_minutes_after_them(connection):
    now = datetime.now(UTC)
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    connection.execute(
        "INSERT INTO hookonce.activity VALUES (60, %(h)s - interval '1 hour', 's', 'accepted', 60), "
        "(1, %(h)s - interval '1 hour', 's', 'accepted', 60), (1, %(h)s, 's', 'accepted', 7), "
        "(1, %(m)s, '', 'filled', 0)",
        {"h": this_hour, "m": max(this_hour, now.replace(second=0, microsecond=0) - MINUTE)},
    )

    found = activity.rates(connection, this_hour - 24 * HOUR, HOUR)

    assert found == [(this_hour - HOUR, "s", "accepted", 60), (this_hour, "s", "accepted", 7)]


def jump_ahead_and_back(connection):
    """Leave what a sweep and a delivery leave while the clock is a day ahead."""
    connection.execute(
        "INSERT INTO hookonce.activity SELECT 1, at, '', 'filled', 1 FROM generate_series("
        "date_trunc('minute', now()), date_trunc('minute', now()) + interval '1 day', interval '1 minute') AS at"
    )
    connection.execute(
        "INSERT INTO hookonce.activity VALUES "
        "(0, 'epoch', 'stripe', 'last', extract(epoch FROM now() + interval '1 day')), "
        "(1, date_trunc('minute', now()) + interval '1 day', 'stripe', 'rejected.stale', 1)"
    )


def test_activity_goes_on_after_a_clock_was_ahead(connection):
    fill(connection)
    connection.execute(
        "DELETE FROM hookonce.activity WHERE what = 'filled' AND at > now() - interval '10 minutes'"
    )
    jump_ahead_and_back(connection)
    deliver(connection, "a", minutes_ago=5)

    assert fill(connection) > 5
    assert ("stripe", "accepted", 1) in counted(connection)
    assert not connection.execute(
        "SELECT FROM hookonce.activity WHERE what = 'filled' AND at > now()"
    ).fetchall()


def test_source_is_silent_from_when_a_clock_came_back(connection):
    jump_ahead_and_back(connection)
    connection.execute(
        "INSERT INTO hookonce.activity VALUES (1, date_trunc('minute', now()) - interval '5 minutes', '', 'filled', 0)"
    )

    fill(connection)

    assert source_activity.last_seen(connection)["stripe"] <= datetime.now(UTC)
    assert source_activity.recent(connection, HOUR, ["rejected.stale"]) == {}


def test_activity_counts_nothing_twice_when_a_minute_comes_again(connection):
    deliver(connection, "a", minutes_ago=5)
    finish(connection, "a", minutes_ago=4)
    fill(connection)
    before = counted(connection, 0)

    connection.execute(
        "DELETE FROM hookonce.activity WHERE what = 'filled' AND at > now() - interval '10 minutes'"
    )
    fill(connection)

    assert counted(connection, 0) == before == [("stripe", "accepted", 1), ("stripe", "done", 1)]


def test_activity_counts_no_hour_again_where_all_marks_are_from_a_clock_that_was_ahead(connection):
    jump_ahead_and_back(connection)

    assert fill(connection) <= 2
