"""What is run alone after a process died: neither its parent's end nor its neighbours cost it anything."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from hookonce.jobs.attempts.endings import LEDGER_LEFT
from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.plan import Plan
from hookonce.jobs.slots.slot_limit import Timeouts
from hookonce.jobs.slots.suspect_child import SuspectChild
from hookonce.jobs.slots.suspects import Suspects
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs import claims, takeover
from tests.support.claiming import Room
from tests.support.inbox import effect
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
SECONDS = 60
SHORT = timedelta(seconds=0.5)
HOUR = timedelta(hours=1)
WORKER = [sys.executable, "-m", "hookonce.receiver.cli", "worker"]
HANDLERS = """
import os
import time
import psycopg
from hookonce import on
from sqlalchemy import text

@on("stripe", "quick", name="quick", attempts=1, timeout=20)
def quick(event, tx):
    tx.execute(text("INSERT INTO effects VALUES (:event)"), {"event": event.event_id})
    time.sleep(0.5)

@on("stripe", "cut", name="cut", attempts=1)
def cut(event, tx):
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [tx.scalar(text("SELECT pg_backend_pid()"))])

@on("stripe", "long", name="long", attempts=1, tx="none", timeout=600)
def long(event):
    time.sleep(600)
"""
RUNNING_ALONE = """
SELECT 1 FROM hookonce.run_states r JOIN hookonce.claims c USING (token) WHERE r.handler = '{}' AND c.is_alone
"""


@pytest.fixture
def environ(database_url, redis_url, tmp_path, monkeypatch):
    """What a worker of the handlers above is started with, in this process's environment."""
    (tmp_path / "handlers.py").write_text(HANDLERS)
    changes = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "HOOKONCE_HANDLERS": "handlers",
        "HOOKONCE_CONFIG": "/dev/null",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
    }
    for name, text in changes.items():
        monkeypatch.setenv(name, text)
    return os.environ


@pytest.fixture
def suspects(inbox):
    """A function that makes suspects of events: a worker of many slots had them under way and died."""

    def quick(_event, _tx):
        pass

    def long(_event):
        pass

    def cut(_event, _tx):
        pass

    inbox.on(cut, pattern="cut", attempts=1)
    inbox.on(quick, pattern="quick", attempts=1)
    inbox.on(long, pattern="long", attempts=1, tx="none")

    def make(**ids):
        for type_, names in ids.items():
            inbox.deliver(*names, type=type_)
        plan = Plan(inbox.registry, Room(4))
        claims.claim(inbox.connection, plan)
        inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now()")
        takeover.take_over(inbox.connection)
        assert parked(inbox) == {("suspect", 0)}

    return make


def parked(inbox):
    return set(inbox.rows("SELECT waits, attempts FROM hookonce.run_states"))


def children(environ):
    """The processes at work on suspects of this test's ledger."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            is_child = b"--suspects" in (entry / "cmdline").read_bytes().split(b"\0")
            if is_child and environ["DATABASE_URL"].encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


@contextmanager
def tended(inbox, url, place, **options):
    """Suspects of this process, which are stopped at the end; a function that tends them as it waits."""
    ours = Suspects([*WORKER, "--suspects"], place, **{"stops_within": SHORT} | options)

    def tend(look, expected=None):
        def tended():
            ours.tend(inbox.connection, ["cut", "long", "quick"])
            return look()

        return until(tended, expected, seconds=SECONDS)

    try:
        yield tend
    finally:
        ours.stop(lambda: connections.connect(url))


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


def test_each_start_of_a_process_that_dies_at_once_brings_suspects_on_by_one(
    inbox, suspects, environ, tmp_path
):
    suspects(quick=["a", "b", "c"])
    for starts in (1, 2):
        command = [*WORKER, "--alone", "--concurrency", "2", "--place", str(tmp_path / "1")]
        worker = subprocess.Popen(command, process_group=0)
        try:
            until(lambda: children(environ), seconds=SECONDS)
        finally:
            worker.kill()  # as by a poisonous run; the child has not begun yet
            worker.wait()
        until(lambda: not children(environ), seconds=SECONDS)
        assert len(inbox.effects()) == starts
    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("done", 1), ("waiting", 0)]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_suspect_under_way_is_given_back_uncounted_when_its_worker_is_told_to_stop(
    inbox, suspects, environ, tmp_path
):
    suspects(long=["a"])

    with tended(inbox, environ["DATABASE_URL"], tmp_path / "1") as tend:
        tend(lambda: inbox.rows(RUNNING_ALONE.format("long")))

    assert parked(inbox) == {("suspect", 0)}
    assert inbox.rows("SELECT status, waits, due_at <= now() FROM hookonce.event_states") == [
        ("waiting", "suspect", True)
    ]
    assert not children(environ)


def test_suspect_that_a_process_before_has_left_behind_is_given_back_too(inbox, suspects, environ, tmp_path):
    suspects(long=["a"])
    with tended(inbox, environ["DATABASE_URL"], tmp_path / "1") as tend:
        tend(lambda: inbox.rows(RUNNING_ALONE.format("long")))

        Suspects([], tmp_path / "1").stop(lambda: connections.connect(environ["DATABASE_URL"]))

        assert parked(inbox) == {("suspect", 0)}


def test_suspect_that_takes_long_keeps_no_others_waiting(inbox, suspects, environ, tmp_path):
    suspects(long=["a"], quick=["b", "c"])

    with tended(inbox, environ["DATABASE_URL"], tmp_path / "1", long=timedelta(seconds=1)) as tend:
        tend(inbox.effects, ["b", "c"])
        assert inbox.rows(RUNNING_ALONE.format("long"))
        assert len(children(environ)) <= 2

    assert [row[2:] for row in inbox.runs()] == [("waiting", 0), ("done", 1), ("done", 1)]


def test_suspects_that_all_take_long_are_as_many_at_once_as_there_may_be(inbox, suspects, environ, tmp_path):
    suspects(long=["a", "b", "c"])
    options = {"long": timedelta(seconds=0.1), "most": 2}

    with tended(inbox, environ["DATABASE_URL"], tmp_path / "1", **options) as tend:
        tend(lambda: len(inbox.rows(RUNNING_ALONE.format("long"))), 2)
        looks = iter(range(50))
        tend(lambda: next(looks, None) is None)
        assert len(children(environ)) == 2

    assert parked(inbox) == {("suspect", 0)}


def test_what_a_suspect_leaves_running_keeps_no_place(tmp_path):
    child, named = SuspectChild(tmp_path / "1"), tmp_path / "daemon"
    # With every descriptor, as what a handler forks.
    child.start(["/bin/sh", "-c", f"sleep 60 & echo $! > {named}"])
    until(lambda: not child.is_ours)
    try:
        assert not child.is_there
        assert child.start(["/bin/sleep"])
        until(lambda: not child.is_there)
    finally:
        os.kill(int(named.read_text()), signal.SIGKILL)


def test_child_whose_last_suspect_was_done_ended_none(inbox, suspects, environ, tmp_path, caplog):
    fails_later = "import subprocess, sys; subprocess.run(sys.argv[1:]); sys.exit(3)"
    suspects(quick=["a"])
    ours = Suspects([sys.executable, "-c", fails_later, *WORKER, "--suspects"], tmp_path / "1")

    def has_ended():
        ours.tend(inbox.connection, ["quick"])
        return inbox.effects() and not ours.count()

    until(has_ended, seconds=SECONDS)
    ours.tend(inbox.connection, ["quick"])

    assert not children(environ)
    assert not [each for each in caplog.messages if "ended its process" in each]


ENDS_BY = """
import os, sys
from pathlib import Path
from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.drain import configured
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs import leases

worker = SingleSlot(*configured())
worker.come_after(LastClaims(Path(sys.argv[sys.argv.index("--place") + 1])))
run = worker._claim_suspect()
leases.note_start(worker.executor.idle_ledger, run)
os._exit(int(sys.argv[1]))
"""
"""A child that begins a suspect, and ends by a status at once."""


@pytest.mark.usefixtures("environ")
@pytest.mark.parametrize(
    ("status", "left"), [(os.EX_UNAVAILABLE, ("waiting", "suspect", 0)), (3, ("waiting", "suspect", 1))]
)
def test_child_is_charged_unless_the_ledger_has_left_it(inbox, suspects, tmp_path, status, left):
    suspects(quick=["a"])
    ours = Suspects([sys.executable, "-c", ENDS_BY, str(status)], tmp_path / "1")
    ours.tend(inbox.connection, ["quick"])
    until(lambda: not ours.count(), seconds=SECONDS)

    ours.tend(inbox.connection, [])

    assert inbox.rows("SELECT status, waits, attempts FROM hookonce.run_states") == [left]
    assert inbox.rows("SELECT FROM hookonce.claims") == []


def test_suspect_that_ends_its_connection_is_charged(inbox, suspects, environ, tmp_path):
    suspects(cut=["a"])

    with tended(inbox, environ["DATABASE_URL"], tmp_path / "1") as tend:
        tend(lambda: [row[2:] for row in inbox.runs()], [("dead", 1)])

    assert inbox.rows("SELECT error FROM hookonce.failures") == [(LEDGER_LEFT,)]


def hurry_when_it_is_said(caplog):
    try:
        until(lambda: "waiting up to" in caplog.text)
    finally:
        hurrying.set()


@pytest.mark.usefixtures("environ")
def test_stop_says_that_a_suspect_is_waited_for_and_hurries_when_told_again(
    inbox, suspects, pool_of, tmp_path, caplog
):
    suspects(long=["a"])

    ours = Suspects([*WORKER, "--suspects"], tmp_path / "1", stops_within=HOUR)
    with pool_of(2, suspects=ours, timeouts=Timeouts(stop=HOUR)) as pool:
        pool.run_due()
        until(lambda: inbox.rows(RUNNING_ALONE.format("long")), seconds=SECONDS)
        stopping.set()
        told = threading.Thread(target=hurry_when_it_is_said, args=[caplog])
        told.start()
        pool.finish()
        told.join()
        until(lambda: parked(inbox), {("suspect", 0)}, falling=True)

    line, *_ = [each for each in caplog.messages if each.startswith("waiting up to")]
    assert "for 1 to end before it stops: run alone (1);" in line


def test_place_that_was_tidied_away_is_made_again_and_one_that_cannot_be_harms_nobody(
    inbox, suspects, environ, tmp_path, caplog
):
    suspects(quick=["a"])
    ours = Suspects(["/nowhere"], tmp_path / "file" / "1")
    (tmp_path / "file").write_text("")
    ours.tend(inbox.connection, ["quick"])
    assert "what is to be run alone waits" in caplog.text

    with tended(inbox, environ["DATABASE_URL"], tmp_path / "gone" / "1") as tend:
        tend(inbox.effects)
