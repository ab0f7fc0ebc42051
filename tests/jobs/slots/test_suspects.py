"""What is run alone after a process died: neither its neighbours nor a stop cost it anything."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from hookonce.jobs import children
from hookonce.jobs.attempts.endings import LEDGER_LEFT
from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.children import CHILDREN, overdue
from hookonce.jobs.claimer import WORKER_ENDED
from hookonce.jobs.plan import Plan
from hookonce.jobs.slots.pool import RESTART
from hookonce.jobs.slots.slot_limit import Timeouts
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.ledger.runs import claims, due_rows, leases, takeover
from tests.support.claiming import Room
from tests.support.inbox import effect
from tests.support.waiting import until

SECONDS = 60
HOUR = timedelta(hours=1)
AT_ONCE = timedelta(0)
CHILD = """
import sys
from datetime import timedelta
from pathlib import Path
from hookonce.jobs.children import work_on_suspects
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs import children
from hookonce.receiver.config.settings import load_settings

registry = Registry()
second = timedelta(seconds=1)
ran = lambda event, tx: print("ran", flush=True)
registry.add(Handler("quick", "stripe", "quick", ran, attempts=1, backoff=(second, second), timeout=second))
children.PATIENCE = timedelta(seconds=float(sys.argv[1]))
work_on_suspects(load_settings(need_secrets=False), registry, 0, Path(sys.argv[2]))
"""
RUNNING_ALONE = """
SELECT 1 FROM hookonce.run_states r JOIN hookonce.claims c USING (token) WHERE r.handler = '{}' AND c.is_suspect
"""


@pytest.fixture
def suspects(inbox, let_go):
    """A function that makes suspects of events: a worker of many slots had them under way and died."""

    def quick(event, tx):
        effect(event, tx)

    def long(_event):
        let_go.wait(SECONDS)

    def cut(_event, tx):
        with psycopg.connect(inbox.settings.database_url) as other:
            other.execute(
                "SELECT pg_terminate_backend(%s, 5000)", [tx.scalar(text("SELECT pg_backend_pid()"))]
            )

    inbox.on(cut, pattern="cut", attempts=1)
    inbox.on(quick, pattern="quick", attempts=1)
    inbox.on(long, pattern="long", attempts=1, tx="none", timeout=HOUR)

    def make(**ids):
        for type_, names in ids.items():
            inbox.deliver(*names, type=type_)
        claims.claim(inbox.connection, Plan(inbox.registry, Room(4)))
        inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now()")
        takeover.take_over(inbox.connection)
        assert parked(inbox) == {("suspect", 0)}

    return make


@pytest.fixture
def child(pool_of):
    """A context manager: what a child of the supervisor is, the first of them or another, until the block ends."""

    def child(number=0, **timeouts):
        return pool_of(1, suspects_overdue=overdue(number), timeouts=Timeouts(**timeouts))

    return child


def parked(inbox):
    return set(inbox.rows("SELECT waits, attempts FROM hookonce.run_states"))


def ends(inbox, *pools):
    """A look: how runs have ended, for whose sake pools look for suspects."""

    def look():
        for pool in pools:
            pool.run_due()
        return [row[2:] for row in inbox.runs()]

    return look


def test_what_a_process_held_is_due_once_it_has_died_and_what_it_was_at_is_suspected(
    inbox, pool_of, tmp_path
):
    inbox.on(effect)
    inbox.registry.note("effect", timedelta(0))
    last = LastClaims(tmp_path / "1")
    with pool_of(2) as pool:
        pool.come_after(last)
        inbox.deliver("a", "b", "c")
        pool._claim(None, pool._capacity.of_claim(2), time.monotonic() + SECONDS, at_once=2)  # noqa: SLF001
        assert last.ended("SIGKILL")

        pool.come_after(last)

        left = inbox.rows("SELECT waits, attempts, token FROM hookonce.queue ORDER BY event")
        assert sorted(left, key=str) == [("suspect", 0, None), ("suspect", 0, None), (None, 0, None)]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_suspects_are_run_and_nothing_else(inbox, suspects, child):
    suspects(quick=["a", "b"])
    inbox.deliver("c", type="quick")

    with child() as pool:
        until(ends(inbox, pool), [("done", 1), ("done", 1)], falling=True)

    assert inbox.rows("SELECT waits, token FROM hookonce.queue") == [(None, None)]


def test_suspect_whose_child_has_died_at_it_is_charged_by_the_next_child(inbox, suspects, child, tmp_path):
    suspects(quick=["a"])
    last = LastClaims(tmp_path / "suspects-0")
    with child() as pool:
        pool.come_after(last)
        run = pool._claim_suspect()  # noqa: SLF001
        leases.note_start(inbox.connection, run)
    last.ended("SIGKILL")
    assert last.is_left

    with child() as pool:
        pool.come_after(LastClaims(tmp_path / "suspects-0"))

    assert [row[2:] for row in inbox.runs()] == [("dead", 1)]
    assert inbox.rows("SELECT error FROM hookonce.failures") == [(f"{WORKER_ENDED}: SIGKILL",)]
    assert not last.is_left


def test_suspect_under_way_is_given_back_uncounted_when_its_child_is_told_to_stop(inbox, suspects, child):
    suspects(long=["a"])
    with child(stop=timedelta(seconds=0.2)) as pool:
        pool.run_due()
        until(lambda: inbox.rows(RUNNING_ALONE.format("long")))

        pool.finish()

        assert inbox.rows("SELECT status, waits, due_at <= now() FROM hookonce.event_states") == [
            ("waiting", "suspect", True)
        ]
        assert parked(inbox) == {("suspect", 0)}


def test_suspect_that_takes_long_keeps_no_others_waiting(inbox, suspects, child):
    suspects(long=["a"], quick=["b", "c"])
    with child(stop=AT_ONCE) as first, child(number=1) as second:
        first.run_due()
        until(lambda: inbox.rows(RUNNING_ALONE.format("long")))
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() WHERE token IS NULL")
        assert not due_rows.is_suspect_due(inbox.connection, overdue(1))
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - %s", [overdue(1)])
        assert due_rows.is_suspect_due(inbox.connection, overdue(1))

        until(ends(inbox, first, second), [("running", 1), ("done", 1), ("done", 1)], falling=True)


def test_supervisor_has_another_child_for_what_the_first_one_leaves():
    assert CHILDREN > 1
    assert overdue(0) == AT_ONCE < overdue(1)


def test_suspect_that_ends_its_connection_is_charged(inbox, suspects, child):
    suspects(cut=["a"])

    def passes():
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() WHERE token IS NULL")
        return ends(inbox, pool)()

    with child() as pool:
        until(passes, [("dead", 1)], seconds=SECONDS, away=psycopg.errors.LockNotAvailable, falling=True)

    assert inbox.rows("SELECT error FROM hookonce.failures") == [(LEDGER_LEFT,)]


def hurry_when_it_is_said(caplog):
    try:
        until(lambda: "waiting up to" in caplog.text)
    finally:
        hurrying.set()


def test_stop_says_that_a_suspect_is_waited_for_and_hurries_when_told_again(inbox, suspects, child, caplog):
    suspects(long=["a"])
    with child(stop=HOUR) as pool:
        pool.run_due()
        until(lambda: inbox.rows(RUNNING_ALONE.format("long")))
        stopping.set()
        told = threading.Thread(target=hurry_when_it_is_said, args=[caplog])
        told.start()
        pool.finish()
        told.join()
        until(lambda: parked(inbox), {("suspect", 0)}, falling=True)

    line, *_ = [each for each in caplog.messages if each.startswith("waiting up to")]
    assert "for 1 to end before it stops: long (1);" in line


def test_suspect_that_takes_long_is_no_time_without_suspects(inbox, suspects, child, let_go):
    suspects(long=["a"])
    with child() as pool:
        pool.run_due()
        until(lambda: inbox.rows(RUNNING_ALONE.format("long")))
        until(lambda: not pool.has_had_no_suspect_for(AT_ONCE))  # it is leased a moment before a slot has it

        let_go.set()

        until(lambda: pool.has_had_no_suspect_for(AT_ONCE))
        assert not pool.has_had_no_suspect_for(HOUR)


@pytest.fixture
def process(inbox, redis_url):
    """A function that starts a process of Python which works on the inbox; it ends with the test."""
    environ = {"DATABASE_URL": inbox.settings.database_url, "REDIS_URL": redis_url}
    started = []

    def start(*arguments):
        started.append(
            subprocess.Popen(
                [sys.executable, *map(str, arguments)],
                env=os.environ | environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return started[0]

    yield start
    for each in started:
        each.kill()
        each.communicate()


@pytest.mark.parametrize("patience", [1, 3600])
def test_child_ends_to_be_started_again_when_no_suspect_is_left_and_when_it_is_told(
    suspects, process, tmp_path, patience
):
    suspects(quick=["a"])
    child = process("-c", CHILD, patience, tmp_path / "suspects-0")
    assert "ran\n" in iter(child.stdout.readline, "")

    if patience > SECONDS:
        child.send_signal(signal.SIGTERM)

    assert child.wait(SECONDS) == RESTART
    last = LastClaims(tmp_path / "suspects-0")
    assert last.ended("exit status 75") == (patience > SECONDS)  # else the next one would not wait


def test_worker_of_many_slots_without_a_supervisor_says_that_it_runs_no_suspects(process):
    worker = process("-m", "hookonce.receiver.cli", "worker", "--alone", "--concurrency", 2)

    assert any(children.NO_SUSPECTS in line for line in iter(worker.stdout.readline, ""))

    worker.send_signal(signal.SIGTERM)
    worker.wait(SECONDS)
