import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from hookonce.jobs.drain import WORKER_ENDED, Drain
from hookonce.jobs.last_attempt import LastAttempt
from hookonce.receiver.ledger.runs import run_end, transitions
from tests.support.inbox import effect, inbox
from tests.support.waiting import until

__all__ = ["inbox"]

ROOT = Path(__file__).parents[2]
SECONDS = 60
HANDLERS = """
import os, signal
from hookonce import on

@on("stripe", "exits", attempts=1)
def exits(event, tx):
    os._exit(3)

@on("stripe", "is.killed", attempts=1)
def is_killed(event, tx):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_end_of_a_worker_is_said_of_the_attempt_that_it_was_at(inbox, database_url, redis_url, tmp_path):
    (tmp_path / "handlers.py").write_text(HANDLERS)
    ends = {"exits": "exit status 3", "is.killed": "SIGKILL"}
    ids = [inbox.deliver(f"evt_{type_}", type=type_)[0] for type_ in ends]
    environ = os.environ | {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "HOOKONCE_HANDLERS": "handlers",
        "PYTHONPATH": str(ROOT),
    }
    worker = subprocess.Popen(
        [sys.executable, "-m", "hookonce.receiver.cli", "worker"],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        expected = [(id_, 1, f"{WORKER_ENDED}: {how}") for id_, how in zip(ids, ends.values(), strict=True)]
        until(lambda: sorted(errors(inbox)), expected, seconds=SECONDS, process=worker)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(SECONDS)


def errors(inbox):
    return inbox.rows("SELECT event, attempt, error FROM hookonce.failures")


@pytest.fixture
def died(inbox, tmp_path):
    """A worker that died at an attempt, whose transaction is still on its way; gives that run and what was left."""
    inbox.on(effect, attempts=2)
    inbox.deliver("evt_1")
    drain = Drain(inbox.settings, inbox.registry)
    inbox.drains.append(drain)
    last = LastAttempt(tmp_path / "1")
    drain.come_after(last)
    (run,) = drain._claim(None).runs  # noqa: SLF001
    last.begin(run)
    last.ended("exit status 3")
    return run, last


def test_lease_that_runs_out_adds_no_second_failure(inbox, died):
    _, last = died

    inbox.drains[0].come_after(last)
    inbox.connection.execute("UPDATE hookonce.runs SET lease_until = now(), due_at = now()")
    inbox.connection.execute("UPDATE hookonce.events SET due_at = now()")
    while inbox.work():
        pass

    assert [row[1:] for row in errors(inbox)] == [(1, f"{WORKER_ENDED}: exit status 3")]
    assert (inbox.runs()[0][2:], inbox.effects()) == (("done", 2), ["evt_1"])


def test_attempt_that_was_said_to_have_failed_can_not_be_committed_any_more(inbox, died):
    run, last = died
    inbox.drains[0].come_after(last)

    ending = run_end.AttemptResult(transitions.RunStatus.DONE)
    with pytest.raises((run_end.LeaseLost, psycopg.errors.DivisionByZero)):
        run_end.end(inbox.connection, run, ending, None, chain=False)

    assert len(errors(inbox)) == 1


def test_end_of_a_worker_that_was_at_nothing_is_no_failure(inbox, died):
    _, last = died
    inbox.connection.execute("UPDATE hookonce.runs SET status = 'done', token = NULL")

    inbox.drains[0].come_after(last)

    assert errors(inbox) == []
    assert last.take() is None


def test_attempt_goes_on_where_it_can_not_be_written_down(inbox, tmp_path):
    inbox.on(effect)
    inbox.deliver("evt_1")
    inbox.drains.append(Drain(inbox.settings, inbox.registry))

    inbox.drains[0].come_after(LastAttempt(tmp_path / "absent" / "1"))
    while inbox.work():
        pass

    assert inbox.effects() == ["evt_1"]
