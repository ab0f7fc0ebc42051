"""A worker ends without waiting for what nothing ends; connections that are used after that are closed, too."""

import threading
from contextlib import closing
from datetime import timedelta

import pytest
from psycopg import OperationalError
from sqlalchemy import text

from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.slots.slot_limit import Timeouts
from tests.support.waiting import until

IN_A_HURRY = Timeouts(stop=timedelta(0))
OTHERS = """
SELECT query FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'
"""


def long(event):
    with event.tx() as tx:
        tx.execute(text("SELECT 1"))


def stepping(event, _tx):
    event.step("late", lambda _: None)


@pytest.mark.parametrize(("use", "options"), [(long, {"tx": "none"}), (stepping, {})], ids=["long", "steps"])
def test_slot_that_outlives_its_worker_leaves_no_connection_open(inbox, let_go, use, options):
    def stays(event, *tx):
        has_begun.set()
        let_go.wait(60)
        use(event, *tx)

    has_begun = threading.Event()
    inbox.on(stays, timeout=timedelta(minutes=1), **options)
    pool = Pool(inbox.settings, inbox.registry, slots=1, timeouts=IN_A_HURRY)
    slots = [each._thread for each in pool._slots]  # noqa: SLF001  the threads have no other name
    with closing(pool):
        pool.run_due(inbox.deliver("a"))
        assert has_begun.wait(30)

    let_go.set()
    slots[0].join(30)

    assert not slots[0].is_alive()
    until(lambda: inbox.rows(OTHERS), [])


def test_connection_that_is_lent_when_a_worker_ends_is_closed_when_it_comes_back(inbox):
    worker = SingleSlot(inbox.settings, inbox.registry)

    with worker.lent() as lent:
        worker.close()

    assert lent.closed


def test_executor_that_is_closed_opens_no_other_connection(inbox):
    worker = SingleSlot(inbox.settings, inbox.registry)
    worker.run_due()
    worker.close()

    with pytest.raises(OperationalError, match="has ended"):
        worker.executor.idle_ledger  # noqa: B018  it would open one
