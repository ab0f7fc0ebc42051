"""A server that ends idle connections (a restart, a failover, a proxy): nobody was under way, so nobody is charged."""

import time

import pytest
from sqlalchemy import text

from tests.support.inbox import effect
from tests.support.waiting import until

SLOTS = 4
OTHERS = """
FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'
"""


def plain(event, tx):
    time.sleep(0.1)  # so that each takes a slot
    effect(event, tx)


def long(event):
    time.sleep(0.1)
    with event.tx() as tx:
        tx.execute(text("INSERT INTO effects VALUES (:event)"), {"event": event.event_id})


def stepping(event, tx):
    event.step("one", lambda _: time.sleep(0.1))
    effect(event, tx)


def is_over(inbox):
    return not inbox.rows("SELECT 1 FROM hookonce.event_states WHERE status NOT IN ('done', 'dead')")


@pytest.mark.parametrize(
    ("handler", "options"),
    [(plain, {}), (long, {"tx": "none"}), (stepping, {})],
    ids=["plain", "long", "steps"],
)
def test_connections_that_ended_while_they_lay_idle_charge_nobody(inbox, pool_of, handler, options):
    inbox.on(handler, attempts=1, **options)
    with pool_of(SLOTS) as pool:
        for round_number in range(3):
            ids = inbox.deliver(*[f"{round_number}-{n}" for n in range(SLOTS)])
            pool.run_due(ids)
            until(lambda: is_over(inbox) and pool.is_idle)
            assert len(inbox.rows(f"SELECT pg_terminate_backend(pid) {OTHERS}")) >= SLOTS
            until(lambda: inbox.rows(f"SELECT pid {OTHERS}"), [])
    assert {row[2:] for row in inbox.runs()} == {("done", 1)}
    assert len(inbox.effects()) == 3 * SLOTS
