"""A row that can't be read costs itself and nobody else."""

import logging
import time
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import exc

from hookonce.jobs import claimer
from hookonce.jobs.slots.single_slot import SingleSlot
from tests.support.inbox import effect

ZERO = datetime(1, 1, 1, tzinfo=UTC)


@pytest.fixture
def ancient(inbox):
    """An inbox that keeps the year 1 as the one before it, which Python has no date for."""
    inbox.connection.execute(
        "CREATE FUNCTION public.be_ancient() RETURNS trigger LANGUAGE plpgsql AS $f$ "
        "BEGIN NEW.occurred_at := '0001-01-01 00:00:00+00 BC'; RETURN NEW; END $f$;"
        "CREATE TRIGGER ancient BEFORE INSERT OR UPDATE ON hookonce.events FOR EACH ROW "
        "WHEN (NEW.occurred_at = '0001-01-01 00:00:00+00') EXECUTE FUNCTION public.be_ancient()"
    )
    return inbox


def test_event_that_can_not_be_read_is_dead_and_says_why(ancient):
    ancient.on(effect)
    ancient.deliver("a", occurred_at=ZERO)

    assert ancient.work() == 0

    assert ancient.runs() == [("a", "effect", "dead", 1)]
    assert ancient.rows("SELECT status, due_at FROM hookonce.event_states") == [("dead", None)]
    ((error,),) = ancient.rows("SELECT error FROM hookonce.failures")
    assert error.startswith("this event can't be read from the ledger: occurred_at (timestamp too small")


def test_event_that_can_not_be_read_keeps_no_other_from_being_handled(ancient):
    ancient.on(effect)
    ancient.deliver("a", "b")
    ancient.deliver("odd", "odder", occurred_at=ZERO)
    ancient.deliver("c", occurred_at=datetime(2026, 1, 1, tzinfo=UTC))

    ancient.work()

    assert ancient.effects() == ["a", "b", "c"]
    assert [row[2] for row in ancient.runs() if row[0].startswith("odd")] == ["dead", "dead"]


def test_suspect_that_can_not_be_read_is_dead(ancient):
    ancient.on(effect)
    ancient.deliver("odd", occurred_at=ZERO)
    ancient.connection.execute("UPDATE hookonce.queue SET handler = 'effect', waits = 'suspect'")
    ancient.drains.append(SingleSlot(ancient.settings, ancient.registry))

    assert ancient.drains[0].run_suspects(time.monotonic() + 5) == 0

    assert ancient.runs() == [("odd", "effect", "dead", 1)]


def test_named_event_that_can_not_be_read_does_not_end_the_drain(ancient):
    ancient.on(effect)
    ancient.deliver("a")
    odd = ancient.deliver("odd", occurred_at=ZERO)

    ancient.work(odd)

    assert ancient.effects() == ["a"]


def test_every_handler_of_an_event_that_can_not_be_read_is_dead(ancient):
    def second(event, tx):
        effect(event, tx)

    ancient.on(effect)
    ancient.on(second)
    ancient.deliver("odd", occurred_at=ZERO)

    ancient.work()

    assert ancient.runs() == [("odd", "effect", "dead", 1), ("odd", "second", "dead", 1)]


def test_event_that_can_not_be_read_and_nobody_takes_is_ignored(ancient):
    ancient.deliver("odd", occurred_at=ZERO)

    ancient.work()

    assert ancient.rows("SELECT status, due_at FROM hookonce.event_states") == [("ignored", None)]


def test_run_that_waits_is_dead_when_its_event_can_no_longer_be_read(ancient):
    def shaky(event, tx):
        effect(event, tx)
        ancient.connection.execute("UPDATE hookonce.events SET occurred_at = %s", [ZERO])
        raise RuntimeError("not yet")

    ancient.on(shaky)
    ancient.deliver("a")

    ancient.work()

    assert ancient.runs() == [("a", "shaky", "dead", 2)]
    assert ancient.effects() == []


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
