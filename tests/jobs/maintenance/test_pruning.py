"""Events that have ended and outlived their horizon go, in small steps; one yet to run stays, and its day with it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.jobs.maintenance import tasks
from hookonce.receiver.ledger.maintenance import partitions, retention
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.replay import events
from hookonce.receiver.ledger.stats import event_counts, totals
from tests.support.outcomes import put_into_state

OLD = datetime.now(UTC).replace(hour=12) - timedelta(days=100)
DAY = f"bodies_{OLD:%Y%m%d}"


@pytest.fixture
def aged(inbox):
    """An event, its body and its runs as they would be, had it come 100 days ago."""
    partitions.make_partition(inbox.connection, OLD.date())

    def put(event_id, status):
        (number,) = inbox.deliver(event_id)
        put_into_state(inbox.connection, number, status, [("credit", "done", 1)])
        for table, key in (("events", "id"), ("bodies", "event"), ("queue", "event")):
            statement = f"UPDATE hookonce.{table} SET received_at = %s WHERE {key} = %s"  # noqa: S608
            inbox.connection.execute(statement, [OLD, number])
        return number

    return put


def prune(inbox, **kept):
    done = RetentionPass(Retention.of(replace(inbox.settings, **kept)), patience=1)
    list(done.steps(inbox.connection))
    return done.done


def left(inbox):
    return [number for (number,) in inbox.rows("SELECT id FROM hookonce.event_states ORDER BY id")]


@pytest.mark.parametrize("status", ["received", "running", "waiting", "held"])
def test_day_is_kept_while_one_of_its_events_is_yet_to_run(inbox, aged, status):
    kept = aged("kept", status)
    aged("gone", "done")

    pruned = prune(inbox)

    assert (left(inbox), list(pruned.needed)) == ([kept], [DAY])
    assert DAY in partitions.days(inbox.connection).values()


def test_event_that_is_replayed_while_it_is_looked_at_is_spared(inbox, aged, monkeypatch):
    number = aged("replayed", "done")
    delete = retention.delete_events

    def delete_after_the_replay(connection, ids):
        list(events.replay(inbox.connection, [number], "a person", again=True))
        return delete(connection, ids)

    monkeypatch.setattr(retention, "delete_events", delete_after_the_replay)
    prune(inbox, keep_bodies=timedelta(days=200))

    assert left(inbox) == [number]


def test_bodies_go_before_their_events_where_the_settings_say_so(inbox, aged):
    number = aged("evt_1", "done")

    prune(inbox, keep_events=timedelta(days=101), keep_bodies=timedelta(days=99))

    assert left(inbox) == [number]
    assert DAY not in partitions.days(inbox.connection).values()


def test_what_was_deleted_is_counted_once(inbox, aged):
    for number in range(3):
        aged(f"evt_{number}", "ignored")
    inbox.connection.execute(
        "INSERT INTO hookonce.audit (at, who, action, subject, detail) VALUES (%s, '', '', '', '{}')", [OLD]
    )
    event_counts.recount(inbox.connection)
    event_counts.advance(inbox.connection, event_counts.mark(inbox.connection))

    pruned = prune(inbox, keep_audit=timedelta(days=99))

    assert (pruned.events, pruned.audit) == (3, 1)
    assert list(totals.event_sums(inbox.connection)) == []


def test_sweep_prunes_in_steps_and_goes_on_where_it_stopped(inbox, aged, monkeypatch):
    monkeypatch.setattr(tasks, "PRUNE_STEP", 2)
    monkeypatch.setattr(tasks, "PRUNE_BUDGET", timedelta(0))
    held = aged("held", "held")
    for number in range(5):
        aged(f"evt_{number}", "done")
    (young,) = inbox.deliver("young")
    sweep = tasks.Pruner(inbox.settings)

    seen = []
    while not inbox.rows("SELECT FROM hookonce.audit"):
        sweep.turn(inbox.connection)
        seen.append(len(left(inbox)))

    assert sorted(set(seen), reverse=True) == [7, 6, 4, 2]
    assert left(inbox) == [held, young]
    assert inbox.rows("SELECT who, action FROM hookonce.audit") == [("sweep", "prune")]


def test_sweep_prunes_nothing_when_told_not_to(inbox, aged):
    number = aged("evt_1", "done")

    tasks.Pruner(replace(inbox.settings, auto_prune=False)).turn(inbox.connection)

    assert left(inbox) == [number]
