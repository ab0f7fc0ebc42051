import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psycopg
import pytest

from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.jobs.claimer import WORKER_ENDED
from hookonce.jobs.slots.capacity import OneAtATime
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claimed import LEASE
from hookonce.receiver.ledger.runs.ends import AttemptResult, LeaseLost
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.states import RunStatus
from tests.support.claiming import end, lapse
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


@pytest.mark.parametrize("concurrency", ["1", "3"])
def test_end_of_a_worker_is_said_of_what_it_was_at_before_its_lease_is_over(
    inbox, database_url, redis_url, tmp_path, concurrency
):
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
        [sys.executable, "-m", "hookonce.receiver.cli", "worker", "--concurrency", concurrency],
        cwd=tmp_path,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        expected = [(id_, 1, f"{WORKER_ENDED}: {how}") for id_, how in zip(ids, ends.values(), strict=True)]
        until(lambda: sorted(errors(inbox)), expected, seconds=LEASE.total_seconds(), process=worker)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(SECONDS)


def errors(inbox):
    return inbox.rows("SELECT event, attempt, error FROM hookonce.failures")


@pytest.fixture
def drain(inbox):
    inbox.on(effect, attempts=2)
    inbox.drains.append(SingleSlot(inbox.settings, inbox.registry))
    return inbox.drains[0]


@pytest.fixture
def died(inbox, drain, tmp_path):
    """A worker that died at an attempt that it made alone, whose transaction is still on its way; that run, and how."""
    inbox.deliver("evt_1")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'effect', waits = 'suspect'")
    last = LastClaims(tmp_path / "1")
    drain.come_after(last)
    run = drain._claim_suspect()  # noqa: SLF001
    leases.note_start(inbox.connection, run)
    last.ended("exit status 3")
    return run, last


def test_lease_that_runs_out_adds_no_second_failure(inbox, drain, died):
    _, last = died

    drain.come_after(last)
    lapse(inbox.connection)
    while inbox.work():
        pass

    assert [row[1:] for row in errors(inbox)] == [(1, f"{WORKER_ENDED}: exit status 3")]
    assert (inbox.runs()[0][2:], inbox.effects()) == (("done", 2), ["evt_1"])


def test_attempt_that_was_said_to_have_failed_can_not_be_committed_any_more(inbox, drain, died):
    run, last = died
    drain.come_after(last)

    with pytest.raises(LeaseLost):
        end(inbox.connection, run, AttemptResult(RunStatus.DONE))

    inbox.connection.rollback()
    assert len(errors(inbox)) == 1


def test_end_of_a_worker_that_was_at_nothing_is_no_failure(inbox, drain, died):
    run, last = died
    end(inbox.connection, run, AttemptResult(RunStatus.DONE))

    drain.come_after(last)

    assert errors(inbox) == []
    assert last.left() is None


def test_attempt_that_others_may_have_killed_is_a_suspect_at_once_and_not_charged(inbox, drain, tmp_path):
    inbox.deliver("evt_1")
    last = LastClaims(tmp_path / "1")
    drain.come_after(last)
    drain._claim(None, OneAtATime(inbox.registry), time.monotonic() + 60)  # noqa: SLF001
    assert last.ended("exit status 3")

    drain.come_after(last)

    assert inbox.rows("SELECT waits, attempts, token FROM hookonce.queue") == [("suspect", 0, None)]
    assert errors(inbox) == []


def test_worker_that_has_claimed_nothing_has_left_nothing(tmp_path):
    last = LastClaims(tmp_path / "1")

    assert not last.ended("exit status 1")

    assert last.left() is None


def test_batch_whose_worker_ended_comes_back_in_halves_at_once(inbox, tmp_path, monkeypatch):
    def takes(events, _tx):
        sizes.append(len(events))

    def die(attempt, _following):
        sizes.append(len(attempt.runs))
        raise KeyboardInterrupt

    sizes = []
    inbox.on(takes, batch=BatchSize(8))
    drains = [SingleSlot(inbox.settings, inbox.registry) for _ in range(2)]
    inbox.drains += drains
    monkeypatch.setattr(drains[0].executor, "_make", die)
    inbox.deliver(*"abcd")
    last = LastClaims(tmp_path / "1")
    drains[0].come_after(last)
    with pytest.raises(KeyboardInterrupt):
        drains[0].run_due()
    last.ended("exit status 3")

    drains[1].come_after(last)
    drains[1].run_due()

    assert sizes == [4, 2, 2]


def test_attempt_goes_on_where_it_can_not_be_written_down(inbox, drain, tmp_path):
    inbox.deliver("evt_1")

    drain.come_after(LastClaims(tmp_path / "absent" / "1"))
    while inbox.work():
        pass

    assert inbox.effects() == ["evt_1"]


def test_claims_of_the_worker_before_are_left_until_the_ledger_is_there(inbox, drain, died, monkeypatch):
    _, last = died
    monkeypatch.setattr(type(drain.executor), "idle_ledger", property(lambda _: away()))
    drain.come_after(last)
    monkeypatch.undo()
    assert errors(inbox) == []

    inbox.work()

    assert [row[1:] for row in errors(inbox)] == [(1, f"{WORKER_ENDED}: exit status 3")]
    assert not last.is_left


def away():
    raise psycopg.OperationalError("the ledger is away")


def test_claims_that_a_worker_died_before_taking_over_are_the_next_one_s(died, tmp_path):
    run, _ = died
    second, held = LastClaims(tmp_path / "1"), OwnClaims()
    held.add([run._replace(token=uuid.uuid4())])
    second.hold(held)

    second.ended("SIGKILL")

    assert set(second.left().tokens) == {run.token, *held.tokens}
