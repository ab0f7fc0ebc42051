"""Runs under way when the ledger goes away: given back at once, and told from those that take it down each time."""

from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from hookonce.jobs.attempts.endings import LEDGER_LEFT
from hookonce.jobs.attempts.single import SingleRun
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs import ends, leases, takeover
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from tests.support import claiming
from tests.support.inbox import effect
from tests.support.waiting import until

NO_PAUSE = timedelta(0)
END_MYSELF = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture
def down(monkeypatch):
    """Set where the ledger stays away until an attempt whose session has ended can't be ended either."""
    down = set()
    right = SingleRun._write_failure  # noqa: SLF001

    def write_failure(self, ending, **how):
        if self.run.event.event_id in down:
            raise psycopg.OperationalError("the server is starting up")
        return right(self, ending, **how)

    monkeypatch.setattr(SingleRun, "_write_failure", write_failure)
    return down


def test_handler_that_takes_the_ledger_down_each_time_is_dead_at_last_and_others_go_on(inbox, down):
    starts = []

    def takes_it_down(event, tx):
        starts.append(event.event_id)
        tx.execute(text(END_MYSELF))

    down.add("bad")
    inbox.on(takes_it_down, pattern="bad", attempts=2, backoff=(NO_PAUSE, NO_PAUSE))
    inbox.on(effect, pattern="good")
    inbox.deliver("bad", type="bad")
    inbox.deliver("good", type="good")

    until(lambda: (inbox.work(), inbox.runs())[1][0][2:], ("dead", 2))

    assert inbox.effects() == ["good"]
    assert len(starts) == 4, "twice beside others, twice alone"
    assert inbox.rows("SELECT attempt, error FROM hookonce.failures ORDER BY attempt") == [
        (1, LEDGER_LEFT),
        (2, LEDGER_LEFT),
    ]


def test_run_that_was_cut_off_once_is_given_back_uncharged_and_no_suspect(inbox, down):
    def is_cut_off_once(event, tx):
        if down:
            tx.execute(text(END_MYSELF))
        effect(event, tx)

    down.add("a")
    inbox.on(is_cut_off_once)
    inbox.deliver("a")
    inbox.work()
    down.clear()

    until(lambda: (inbox.work(), inbox.effects())[1], ["a"])

    assert inbox.runs() == [("a", "is_cut_off_once", "done", 1)]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_run_whose_connection_breaks_at_its_end_is_charged_with_nothing(inbox, monkeypatch):
    broken = []
    right = ends.end

    def end(connection, *args, **options):
        if not broken:
            broken.append(connection)
            inbox.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
        return right(connection, *args, **options)

    monkeypatch.setattr(ends, "end", end)
    inbox.on(effect, attempts=1)
    inbox.deliver("a")
    inbox.work()

    until(lambda: (inbox.work(), inbox.effects())[1], ["a"])

    assert inbox.runs() == [("a", "effect", "done", 1)]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_suspect_that_was_claimed_and_never_started_is_charged_with_nothing(inbox):
    inbox.on(effect, attempts=1)
    inbox.deliver("a")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'effect', waits = 'suspect'")
    drain = SingleSlot(inbox.settings, inbox.registry)
    inbox.drains.append(drain)
    assert drain._claim_suspect() is not None  # noqa: SLF001
    inbox.lapse()

    takeover.take_over(inbox.connection, WorkerEnd(handlers=inbox.registry))

    assert inbox.rows("SELECT waits, attempts, token FROM hookonce.queue") == [("suspect", 0, None)]


def test_claim_of_which_rows_came_back_is_not_forgotten(inbox):
    inbox.on(effect)
    inbox.deliver("a", "b")
    runs = claiming.claim(inbox.connection, inbox.registry).runs
    inbox.connection.execute("DELETE FROM hookonce.queue WHERE event = %s", [runs[0].event.id])
    token = runs[0].token

    leases.forget(inbox.connection, [token])  # as by a worker that saw both end, before a crash took one back

    assert inbox.rows("SELECT token FROM hookonce.claims") == [(token,)]
    inbox.connection.execute("DELETE FROM hookonce.queue")
    leases.forget(inbox.connection, [token])
    assert inbox.rows("SELECT token FROM hookonce.claims") == []
