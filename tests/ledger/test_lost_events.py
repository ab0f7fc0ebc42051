"""An event of which there is neither an open run nor an outcome must never be; where one is, it is said and mended."""

import logging
import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import lost_events
from hookonce.receiver.ledger.replay.events import ReplayOutcome, replay
from hookonce.receiver.ledger.stats import totals
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import end_events, lose_events
from tests.support.rewording import reword
from tests.support.waiting import PATIENT

SECOND = timedelta(seconds=1)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def ids(connection):
    """Events: one received, one done, one dead, one lost."""
    rows = store(connection, [new_event(each) for each in "abcd"])
    numbers = sorted(row.id for row in rows.values())
    end_events(connection, "done", numbers[1:2])
    end_events(connection, "dead", numbers[2:3])
    lose_events(connection, numbers[3:])
    return numbers


def again(connection):
    """Let the sweeps have another turn."""
    connection.execute(
        "UPDATE hookonce.lost_slices SET first_at = now() - interval '1 hour' WHERE what = 'looked_for_lost'"
    )


def test_sweep_finds_a_lost_event_and_says_what_to_do(connection, ids, caplog):
    with caplog.at_level(logging.ERROR):
        found = lost_events.look(connection)

    assert found == 1
    assert f"put them back with `hookonce replay {ids[3]}`" in caplog.text
    assert ("stripe", "lost", 1) in [
        (each.source, each.status, each.count) for each in totals.event_sums(connection)
    ]


@pytest.mark.usefixtures("ids")
def test_sweeps_take_turns_to_look(connection, database_url):
    assert lost_events.look(connection) == 1

    with connections.connect(database_url) as other:
        assert lost_events.look(other) == 0


def test_sweep_looks_through_all_slices_newest_first(connection, monkeypatch):
    reword(monkeypatch, lost_events, (str(lost_events.SLICE), "2"))
    monkeypatch.setattr(lost_events, "SLICE", 2)
    monkeypatch.setattr(lost_events, "TURN_LENGTH", timedelta(microseconds=1))
    numbers = sorted(row.id for row in store(connection, [new_event(each) for each in "abcdefg"]).values())
    lose_events(connection, [numbers[0], numbers[-1]])

    seen = []
    for _ in range(len(numbers)):
        seen.append(lost_events.look(connection))
        again(connection)

    assert seen[0] == 1
    assert sum(seen[: numbers[-1] // 2 + 1]) == 2


@pytest.mark.usefixtures("ids")
def test_sweeps_rest_a_hundred_times_as_long_as_a_turn_took(connection, monkeypatch):
    times = iter([100.0, 100.5, 100.5])
    monkeypatch.setattr(lost_events, "time", SimpleNamespace(monotonic=lambda: next(times)))
    assert lost_events.look(connection) == 1
    monkeypatch.undo()

    def turn_after(seconds):
        connection.execute(
            "UPDATE hookonce.lost_slices SET first_at = now() - %s WHERE what = 'looked_for_lost'",
            [seconds * SECOND],
        )
        before = connection.execute("SELECT first_at FROM hookonce.lost_slices").fetchall()
        lost_events.look(connection)
        return connection.execute("SELECT first_at FROM hookonce.lost_slices").fetchall() != before

    assert (turn_after(49), turn_after(51)) == (False, True)


def test_replay_puts_a_lost_event_back_into_the_queue(connection, ids):
    lost_events.look(connection)

    (outcome,) = replay(connection, ids[3:], "a test")

    assert outcome.fate is ReplayOutcome.REPLAYED
    status = connection.execute("SELECT status FROM hookonce.event_states WHERE id = %s", ids[3:]).fetchone()
    assert status == ("received",)
    again(connection)
    assert lost_events.look(connection) == 0
    assert {
        status: n
        for _, status, n in [(each.source, each.status, each.count) for each in totals.event_sums(connection)]
    } == {
        "received": 2,
        "done": 1,
        "dead": 1,
    }


def test_nothing_is_taken_for_lost_while_it_comes_and_ends(connection, database_url):
    stop, found = threading.Event(), []

    def looks():
        with connections.connect(database_url, **PATIENT) as own:
            while not stop.is_set():
                found.extend(lost_events.found_so_far(own, SECOND))

    looker = threading.Thread(target=looks)
    looker.start()
    for n in range(60):
        rows = store(connection, [new_event(f"{n}-{each}") for each in range(10)])
        end_events(connection, "done", [row.id for row in rows.values()])
    stop.set()
    looker.join()

    assert found == []
