"""A row that can't be read costs itself and nobody else; here, by a pooler's server that is west of UTC."""

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import exc

from hookonce.jobs import claimer
from hookonce.jobs.slots.single_slot import SingleSlot
from tests.support.inbox import effect

ZERO = datetime(1, 1, 1, tzinfo=UTC)


@pytest.fixture
def western(inbox):
    """An inbox whose workers set nothing for their session, in New York."""
    url = inbox.settings.database_url
    separator = "&" if "?" in url else "?"
    western_url = f"{url}{separator}pgbouncer=true&options=-c%20timezone%3DAmerica/New_York"
    inbox.settings = replace(inbox.settings, database_url=western_url)
    return inbox


def test_event_that_can_not_be_read_is_dead_and_says_why(western):
    western.on(effect)
    western.deliver("a", occurred_at=ZERO)

    assert western.work() == 0

    assert western.runs() == [("a", "effect", "dead", 1)]
    assert western.rows("SELECT status, due_at FROM hookonce.event_states") == [("dead", None)]
    ((error,),) = western.rows("SELECT error FROM hookonce.failures")
    assert error.startswith("this event can't be read from the ledger: occurred_at (timestamp too small")


def test_event_that_can_not_be_read_keeps_no_other_from_being_handled(western):
    western.on(effect)
    western.deliver("a", "b")
    western.deliver("odd", "odder", occurred_at=ZERO)
    western.deliver("c", occurred_at=datetime(2026, 1, 1, tzinfo=UTC))

    western.work()

    assert western.effects() == ["a", "b", "c"]
    assert [row[2] for row in western.runs() if row[0].startswith("odd")] == ["dead", "dead"]


def test_suspect_that_can_not_be_read_is_dead(western):
    western.on(effect)
    western.deliver("odd", occurred_at=ZERO)
    western.connection.execute("UPDATE hookonce.queue SET handler = 'effect', waits = 'suspect'")
    western.drains.append(SingleSlot(western.settings, western.registry))

    assert western.drains[0].run_suspects(time.monotonic() + 5) == 0

    assert western.runs() == [("odd", "effect", "dead", 1)]


def test_named_event_that_can_not_be_read_does_not_end_the_drain(western):
    western.on(effect)
    western.deliver("a")
    odd = western.deliver("odd", occurred_at=ZERO)

    western.work(odd)

    assert western.effects() == ["a"]


def test_every_handler_of_an_event_that_can_not_be_read_is_dead(western):
    def second(event, tx):
        effect(event, tx)

    western.on(effect)
    western.on(second)
    western.deliver("odd", occurred_at=ZERO)

    western.work()

    assert western.runs() == [("odd", "effect", "dead", 1), ("odd", "second", "dead", 1)]


def test_event_that_can_not_be_read_and_nobody_takes_is_ignored(western):
    western.deliver("odd", occurred_at=ZERO)

    western.work()

    assert western.rows("SELECT status, due_at FROM hookonce.event_states") == [("ignored", None)]


def test_run_that_waits_is_dead_when_its_event_can_no_longer_be_read(western):
    def shaky(event, tx):
        effect(event, tx)
        western.connection.execute("UPDATE hookonce.events SET occurred_at = %s", [ZERO])
        raise RuntimeError("not yet")

    western.on(shaky)
    western.deliver("a")

    western.work()

    assert western.runs() == [("a", "shaky", "dead", 2)]
    assert western.effects() == []


@pytest.mark.parametrize("error", [psycopg.DataError("odd"), exc.DataError("SELECT", {}, ValueError("odd"))])
def test_data_that_does_not_fit_is_no_outage(inbox, caplog, monkeypatch, error):
    def claim(*_, **__):
        raise error

    inbox.on(effect)
    monkeypatch.setattr(claimer.claims, "claim", claim)

    with caplog.at_level(logging.WARNING):
        inbox.work()

    (record,) = caplog.records
    assert (record.levelname, "away" in record.getMessage()) == ("ERROR", False)


def test_runs_whose_events_were_deleted_by_hand_keep_no_other_waiting(inbox, caplog):
    inbox.on(effect)
    gone = inbox.deliver(*(str(number) for number in range(claimer.CLAIM_BATCH + 1)))
    inbox.connection.execute("DELETE FROM hookonce.events WHERE id = ANY(%s)", [gone])
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == ["a"]
    assert inbox.rows("SELECT count(*) FROM hookonce.queue") == [(0,)]
    assert "not in the ledger any more" in caplog.text
