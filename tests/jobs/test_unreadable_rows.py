"""A moment that Python can't name, or a row without its event, fails no claim."""

import logging
import time

import psycopg
import pytest
from sqlalchemy import exc

from hookonce.jobs import claimer
from hookonce.jobs.slots.single_slot import SingleSlot
from tests.support.inbox import effect


@pytest.mark.parametrize("moment", ["0044-03-15 BC", "-infinity", "infinity", "12000-01-01"])
def test_event_of_a_moment_that_python_can_not_name_is_handled_as_any(inbox, moment):
    seen = []

    def sees(event, tx):
        effect(event, tx)
        seen.append(event.occurred_at)

    inbox.on(sees)
    events = inbox.deliver("a", "odd", "c")
    inbox.connection.execute("UPDATE hookonce.events SET occurred_at = %s WHERE id = %s", [moment, events[1]])

    inbox.work()

    assert inbox.effects() == ["a", "c", "odd"]
    assert [at.year for at in seen if at] in ([1], [9999])


def test_suspect_of_such_a_moment_is_run(inbox):
    inbox.on(effect)
    inbox.deliver("odd")
    inbox.connection.execute("UPDATE hookonce.events SET occurred_at = '-infinity'")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'effect', waits = 'suspect'")
    inbox.drains.append(SingleSlot(inbox.settings, inbox.registry))

    assert inbox.drains[0].run_suspects(time.monotonic() + 5) == 1

    assert inbox.runs() == [("odd", "effect", "done", 1)]


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
