"""The table of reasons to wait: what the queue, lists and texts say is one thing, and tables.md says the same."""

import re
from pathlib import Path

import pytest

from hookonce.receiver.ledger import pauses, reasons
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.reasons import REASONS, WaitsFor
from hookonce.receiver.ledger.runs import parking
from hookonce.receiver.ledger.store import store
from tests.ledger.test_parking import Planner
from tests.support import claiming
from tests.support.new_event import new_event

TABLES = Path(__file__).parents[2] / "docs" / "reference" / "tables.md"
OF_ROWS = [
    ("source", "stripe", "source:stripe", "source"),
    ("type", "stripe:invoice.*", "type:stripe:invoice.*", "type"),
]
"""Pauses that rows are told by, of the events of `met`: kind, name, and what the queue and a list say."""


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def met(connection):
    """Give three events that are due: two of `stripe`, one of `github`."""
    found = [
        new_event("evt_1", source="stripe", type="invoice.paid"),
        new_event("evt_2", source="stripe", type="customer.created"),
        new_event("evt_3", source="github", type="invoice.paid"),
    ]
    store(connection, found)
    return connection


def words(connection):
    return dict(
        connection.execute(
            "SELECT e.event_id, q.waits FROM hookonce.queue q JOIN hookonce.events e ON e.id = q.event "
            "WHERE waits IS NOT NULL"
        ).fetchall()
    )


def test_every_word_is_explained_with_its_end():
    told = dict(re.findall(r"^\| `([a-z]+)(?::<[^`]+>)?` \| (.+) \|$", TABLES.read_text(), re.MULTILINE))

    assert {each.word: each.until for each in REASONS if each.word} == {
        word: until for word, until in told.items() if word in {each.word for each in REASONS}
    }


def test_every_reason_has_words_for_users():
    assert {each.waits_for for each in REASONS} == set(WaitsFor)
    for each in REASONS:
        assert each.words
        assert "%" not in (each.pause.matches if each.pause else "")


@pytest.mark.parametrize(
    ("parked", "runs", "expected"),
    [
        ("limit:acct_1", [WaitsFor.LIMIT], WaitsFor.LIMIT),
        ("suspect", [WaitsFor.SUSPECT, WaitsFor.BREAKER], WaitsFor.SUSPECT),
        ("handler", [WaitsFor.BREAKER, None], WaitsFor.BREAKER),
        ("handler", [WaitsFor.PAUSE], WaitsFor.PAUSE),
        ("source", [WaitsFor.BREAKER], WaitsFor.PAUSE),
    ],
)
def test_what_is_parked_is_told_by_its_word(parked, runs, expected):
    assert reasons.why(parked, runs).waits_for is expected


@pytest.mark.parametrize(("kind", "name", "word", "shown"), OF_ROWS)
def test_pause_of_rows_keeps_only_its_rows_waiting(met, kind, name, word, shown):
    pauses.pause(met, kind, name, "test")
    rows = met.execute(f"SELECT event FROM hookonce.queue WHERE {reasons.IS_NOT_PAUSED}")  # noqa: S608  a constant
    free = [event for (event,) in rows]
    parking.park_rows(met)

    kept = words(met)
    assert kept
    assert set(kept.values()) == {word}
    assert len(kept) + len(free) == 3
    assert not set(free) & {
        event for (event,) in met.execute("SELECT event FROM hookonce.queue WHERE waits IS NOT NULL")
    }
    assert {each.event_id for each in events.events(met, Filter()) if each.parked == shown} == set(kept)
    assert {found for event in range(1, 4) for found in pauses.keeping(met, event)} == {(kind, name)}


@pytest.mark.parametrize(("kind", "name"), [row[:2] for row in OF_ROWS])
def test_resume_makes_due_what_a_pause_of_rows_kept(met, kind, name):
    pauses.pause(met, kind, name, "test")
    parking.park_rows(met)

    pauses.resume(met, kind, name, "test")

    assert words(met) == {}


@pytest.mark.parametrize(("kind", "name"), [row[:2] for row in OF_ROWS])
def test_sweep_makes_due_what_a_pause_that_is_gone_has_left(met, kind, name):
    pauses.pause(met, kind, name, "test")
    parking.park_rows(met)
    met.execute("DELETE FROM hookonce.pauses")

    parking.unpark_left(met)

    assert words(met) == {}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("stripe:invoice.*", {"evt_1"}),
        ("stripe:invoice.paid", {"evt_1"}),
        ("stripe:*", {"evt_1", "evt_2"}),
        ("stripe:*.created", {"evt_2"}),
        ("stripe:invoice", set()),
        ("stripe:invoice_paid", set()),
        ("stripe:%", set()),
        ("stripe:\\*", set()),
        ("git*:invoice.paid", set()),
    ],
)
def test_pause_of_a_type_takes_only_stars_for_any_text(met, name, kept):
    pauses.pause(met, "type", name, "test")

    parking.park_rows(met)

    assert set(words(met)) == kept


def test_runs_of_other_types_go_on_beside_one_that_is_paused(met):
    pauses.pause(met, "type", "stripe:invoice.*", "test")
    beside = {run.event.event_id for run in claiming.claim(met, Planner("a")).runs}
    pauses.resume(met, "type", "stripe:invoice.*", "test")
    after = {run.event.event_id for run in claiming.claim(met, Planner("a")).runs}

    assert (beside, after) == ({"evt_2", "evt_3"}, {"evt_1"})


def test_type_stays_paused_when_its_source_is_resumed(met):
    pauses.pause(met, "source", "stripe", "test")
    pauses.pause(met, "type", "stripe:invoice.*", "test")
    parking.park_rows(met)

    pauses.resume(met, "source", "stripe", "test")
    parking.park_rows(met)

    assert words(met) == {"evt_1": "type:stripe:invoice.*"}


def test_retry_of_a_type_that_was_paused_is_due_when_it_is_resumed(met):
    met.execute("UPDATE hookonce.queue SET due_at = now() + interval '1 h'")
    pauses.pause(met, "type", "stripe:invoice.*", "test")

    pauses.resume(met, "type", "stripe:invoice.*", "test")

    due = met.execute(
        "SELECT e.event_id FROM hookonce.queue q JOIN hookonce.events e ON e.id = q.event WHERE due_at <= now()"
    )
    assert due.fetchall() == [("evt_1",)]
