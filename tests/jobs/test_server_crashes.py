"""A crash of PostgreSQL, told from what its own handler does: innocent runs are charged with nothing."""

import os
import signal
import threading
import time

import pytest
from sqlalchemy import text

from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs.takeover import CHARGED_FROM
from tests.support.crashing import connected, crash, crashing, server
from tests.support.inbox import effect
from tests.support.waiting import until

__all__ = ["crashing", "server"]

CRASHES, INNOCENT = 20, 60


@pytest.fixture
def pool(crashing):
    """Work in many slots, in a thread, until the test is over; give what works on suspects, one at a time."""
    suspects = SingleSlot(crashing.settings, crashing.registry)
    crashing.drains += [Pool(crashing.settings, crashing.registry, slots=6), suspects]
    over = threading.Event()

    def work():
        while not over.wait(0.05):
            crashing.drains[0].run_due()

    working = threading.Thread(target=work)
    yield suspects, working
    over.set()
    working.join()
    crashing.connection.close()


def test_no_innocent_run_is_charged_or_suspected_by_crashes_of_the_server(crashing, pool):
    def works(event, tx):
        effect(event, tx)
        time.sleep(0.3)
        tx.execute(text("SELECT pg_sleep(0.3)"))

    crashing.on(works, attempts=1)
    names = [f"evt_{number:02}" for number in range(INNOCENT)]
    crashing.deliver(*names)
    pool[1].start()
    for _ in range(CRASHES):
        time.sleep(0.4)
        crash(crashing)
        crashing.connection.close()
        crashing.connection = connected(crashing.settings.database_url)

    until(crashing.effects, names, seconds=120)

    assert {run[2:] for run in crashing.runs()} == {("done", 1)}
    assert crashing.rows("SELECT 1 FROM hookonce.failures") == []


def test_handler_that_crashes_the_server_each_time_is_dead_and_its_neighbours_uncharged(crashing, pool):
    starts = []
    suspects, working = pool

    def crashes(_event, tx):
        starts.append(time.monotonic())
        (backend,) = tx.execute(text("SELECT pg_backend_pid()")).one()
        os.kill(backend, signal.SIGKILL)
        tx.execute(text("SELECT pg_sleep(5)"))

    def works(event, tx):
        effect(event, tx)
        time.sleep(0.5)

    crashing.on(crashes, pattern="bad", attempts=2)
    crashing.on(works, pattern="good", attempts=1)
    names = [f"evt_{number:02}" for number in range(30)]
    crashing.deliver("bad", type="bad")
    crashing.deliver(*names, type="good")
    working.start()

    def look():
        crashing.connection.close()
        crashing.connection = connected(crashing.settings.database_url)
        crashing.connection.execute("UPDATE hookonce.queue SET due_at = now() WHERE token IS NULL")
        suspects.run_due()
        return crashing.rows("SELECT status, attempts FROM hookonce.runs WHERE handler = 'crashes'")

    until(look, [("dead", 2)], seconds=120, away=Exception)
    until(crashing.effects, names, seconds=60)

    assert len(starts) == CHARGED_FROM + 1
    assert {run[2:] for run in crashing.runs() if run[1] == "works"} == {("done", 1)}
