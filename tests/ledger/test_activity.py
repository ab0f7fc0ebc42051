import threading
from datetime import UTC, datetime, timedelta

import pytest
from make import new_event

from receiver import database
from receiver.ledger import activity, notes
from receiver.ledger.store import store

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
AN_HOUR_AGO = datetime.now(UTC) - HOUR


@pytest.fixture
def connection(database_url):
    with database.connect(database_url) as connection:
        yield connection


def deliver(connection, *event_ids, minutes_ago=5, **changes):
    store(connection, [new_event(event_id, **changes) for event_id in event_ids])
    connection.execute(
        "UPDATE events SET received_at = date_trunc('minute', now()) - %s WHERE event_id = ANY(%s)",
        [minutes_ago * MINUTE, list(event_ids)],
    )


def finish(connection, event_id, status="done", *, minutes_ago=4, handler="h", event_status=None):
    connection.execute(
        "INSERT INTO runs (event, handler, status, finished_at) "
        "SELECT id, %s, %s, date_trunc('minute', now()) - %s FROM events WHERE event_id = %s",
        [handler, status, minutes_ago * MINUTE, event_id],
    )
    connection.execute(
        "UPDATE events SET status = %s, due_at = NULL WHERE event_id = %s", [event_status or status, event_id]
    )


def fill(connection):
    filled = 0
    while step := activity.fill(connection):
        filled += step
    return filled


def counted(connection, minutes=1):
    rows = connection.execute(
        "SELECT source, what, sum(count)::int FROM activity WHERE minutes = %s AND what NOT IN ('filled', 'last') "
        "GROUP BY source, what ORDER BY source, what",
        [minutes],
    )
    return rows.fetchall()


def test_activity_counts_what_came_and_ended(connection):
    deliver(connection, "a", "b", "c")
    deliver(connection, "x", source="github")
    finish(connection, "a")
    finish(connection, "b", "dead")

    fill(connection)

    assert counted(connection) == [
        ("github", "accepted", 1),
        ("stripe", "accepted", 3),
        ("stripe", "dead", 1),
        ("stripe", "done", 1),
    ]


def test_activity_counts_an_event_once_when_its_last_run_ends(connection):
    deliver(connection, "a")
    finish(connection, "a", handler="one", minutes_ago=4)
    finish(connection, "a", handler="two", minutes_ago=2)

    fill(connection)

    done = connection.execute(
        "SELECT now() - at FROM activity WHERE minutes = 1 AND what = 'done'"
    ).fetchall()
    assert len(done) == 1
    assert done[0][0] < 3 * MINUTE


def test_activity_does_not_count_an_event_that_waits_for_another_run(connection):
    deliver(connection, "a")
    finish(connection, "a", event_status="waiting")

    fill(connection)

    assert counted(connection) == [("stripe", "accepted", 1)]


def test_activity_counts_an_unreadable_element_as_dead(connection):
    deliver(connection, "a", is_readable=False)

    fill(connection)

    assert counted(connection) == [("stripe", "accepted", 1), ("stripe", "dead", 1)]


def test_activity_leaves_out_the_minute_that_is_not_over(connection):
    deliver(connection, "a", minutes_ago=0)

    assert fill(connection) > 50
    assert counted(connection) == []
    assert fill(connection) <= 1  # a minute may end meanwhile


def test_activity_counts_nothing_twice_from_many_sweeps(connection, database_url):
    def sweep():
        with database.connect(database_url) as own:
            barrier.wait()
            for _ in range(10):
                activity.fill(own)

    deliver(connection, "a", "b")
    finish(connection, "a")
    barrier = threading.Barrier(4, timeout=20)
    threads = [threading.Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fill(connection)

    assert (
        counted(connection)
        == counted(connection, minutes=0)
        == [("stripe", "accepted", 2), ("stripe", "done", 1)]
    )


def test_activity_goes_on_where_it_stopped_after_an_outage(connection):
    fill(connection)
    connection.execute("DELETE FROM activity WHERE minutes = 1 AND at > now() - interval '30 minutes'")
    deliver(connection, "a", minutes_ago=25)
    deliver(connection, "b", minutes_ago=40)  # counted before, as nothing

    assert 25 < fill(connection) < 32
    assert counted(connection) == [("stripe", "accepted", 1)]


def test_activity_rolls_minutes_up_by_the_hour(connection):
    deliver(connection, "a", minutes_ago=61)
    connection.execute(
        "INSERT INTO activity VALUES (1, date_trunc('minute', now()) - interval '130 minutes', '', 'filled', 0)"
    )

    fill(connection)

    assert counted(connection, minutes=60) == [("stripe", "accepted", 1)]


def test_activity_forgets_old_minutes_and_hours(connection):
    connection.execute(
        "INSERT INTO activity VALUES (1, now() - interval '10 days', 'stripe', 'accepted', 1), "
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
    notes.add_rejections(connection, [], {("stripe", "stale"): 2, ("stripe", "bad_signature"): 1})
    notes.add_redeliveries(connection, {("stripe", "a"): 3})

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
        "INSERT INTO activity VALUES (60, %(h)s - interval '1 hour', 's', 'accepted', 60), "
        "(1, %(h)s - interval '1 hour', 's', 'accepted', 60), (1, %(h)s, 's', 'accepted', 7), "
        "(1, %(m)s, '', 'filled', 0)",
        {"h": this_hour, "m": max(this_hour, now.replace(second=0, microsecond=0) - MINUTE)},
    )

    found = activity.rates(connection, this_hour - 24 * HOUR, HOUR)

    assert found == [(this_hour - HOUR, "s", "accepted", 60), (this_hour, "s", "accepted", 7)]
