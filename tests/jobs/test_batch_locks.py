"""In which order batches lock what others lock as well: two that go opposite ways end in a deadlock."""

import threading
from functools import partial

import pytest

from hookonce.jobs.attempts import attempt
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import breakers, takeover
from hookonce.receiver.ledger.stats import counters
from hookonce.receiver.ledger.stats.counters import Kind, Tally
from tests.jobs.test_batches import Batches, names, on_batches
from tests.support.claiming import claim_batch, lapse
from tests.support.inbox import inbox
from tests.support.waiting import PATIENT, until

__all__ = ["inbox"]

IS_WAITING = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def holds_while_it_waits_for(inbox):
    """A function: whether what is done on a connection has locked some rows when it waits for others."""
    url = inbox.settings.database_url

    def holds_while_it_waits_for(act, others, rows):
        with connections.connect(url) as holder, connections.connect(url, **PATIENT) as connection:
            thread = threading.Thread(target=act, args=[connection])
            try:
                with holder.transaction():
                    assert holder.execute(f"{others} FOR UPDATE").fetchall()
                    thread.start()
                    until(lambda: inbox.rows(IS_WAITING))
                    return not holder.execute(f"{rows} FOR UPDATE SKIP LOCKED").fetchall()
            finally:
                thread.join()

    return holds_while_it_waits_for


def test_end_of_a_lone_run_counts_it_before_it_ends_its_breaker(inbox, holds_while_it_waits_for):
    """As the end of a batch does."""
    inbox.rows("INSERT INTO hookonce.batch_counts VALUES ('handler', 1, 1, 0) RETURNING 1")
    inbox.rows(
        "INSERT INTO hookonce.breakers (handler, failures, error) VALUES ('handler', 1, '') RETURNING 1"
    )

    def end(connection):
        with connection.transaction():
            attempt.counting_batch("handler", 1, partial(breakers.close, handler="handler"))(connection)

    counts, breaker = "SELECT 1 FROM hookonce.batch_counts", "SELECT 1 FROM hookonce.breakers"
    assert not holds_while_it_waits_for(end, counts, breaker)
    assert inbox.rows("SELECT batches FROM hookonce.batch_counts") == [(2,)]


def test_lost_batch_is_counted_when_all_its_runs_are_locked(inbox, holds_while_it_waits_for):
    on_batches(inbox, Batches().handler, most=2)
    inbox.deliver(*names(4))
    for _ in range(2):
        assert claim_batch(inbox.connection, inbox.registry).batch
    lapse(inbox.connection)
    counters.add(inbox.connection, {Tally(Kind.RECOVERED, "stripe", "again"): 1})

    last = "SELECT 1 FROM hookonce.queue WHERE event = (SELECT max(event) FROM hookonce.queue)"
    count = "SELECT count FROM hookonce.activity WHERE minutes = 0 AND what = 'recovered.again'"
    assert not holds_while_it_waits_for(takeover.take_over, last, count)
    assert inbox.rows(count) == [(3,)]
