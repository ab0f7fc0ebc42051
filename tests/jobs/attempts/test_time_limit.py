import contextlib
import io
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from tests.support.inbox import effect

LONG = timedelta(hours=1)
ROOT = Path(__file__).parents[3]


def test_alarm_cuts_what_takes_too_long():
    with pytest.raises(TimeUp), TimeLimit() as alarm, alarm.limit(timedelta(seconds=0.05)):
        time.sleep(30)


def test_alarm_puts_back_what_it_found():
    before = signal.getsignal(signal.SIGALRM)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1000)
        with TimeLimit() as alarm, alarm.limit(LONG):
            pass
        left, again = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

    assert signal.getsignal(signal.SIGALRM) == before
    assert 990 < left <= 1000
    assert again == 0


class RingsWhilePutBack(TimeLimit):
    """An alarm that rings in the moment when `unset` looks whether it is set."""

    rung = False

    @property
    def _is_set(self):
        frame = sys._getframe(1)  # noqa: SLF001
        if frame.f_code is TimeLimit.unset.__code__ and not self.rung:
            self.rung = True
            signal.getsignal(signal.SIGALRM)(signal.SIGALRM, frame)
        return self.__dict__["is_set"]

    @_is_set.setter
    def _is_set(self, is_set):
        self.__dict__["is_set"] = is_set


def test_alarm_that_rings_while_it_is_put_back_is_put_back():
    try:
        with RingsWhilePutBack() as alarm, alarm.limit(LONG):
            pass
    finally:
        left = signal.setitimer(signal.ITIMER_REAL, 0)

    assert (alarm.rung, left) == (True, (0, 0))


def test_alarm_needs_no_standard_error_that_is_a_file(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with pytest.raises(TimeUp), TimeLimit() as alarm, alarm.limit(timedelta(seconds=0.05)):
        time.sleep(2)


def test_alarm_rings_after_an_attempt_that_put_another_in_its_place():
    with TimeLimit() as alarm:
        with alarm.limit(LONG):
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        with pytest.raises(TimeUp), alarm.limit(timedelta(seconds=0.05)):
            time.sleep(2)


def test_handler_is_cut_off_at_its_time_limit(inbox):
    def slow(event, tx):
        effect(event, tx)
        with contextlib.suppress(Exception):
            time.sleep(30)

    inbox.on(slow, attempts=1, timeout=timedelta(seconds=0.1))
    inbox.on(effect)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "effect", "done", 1), ("a", "slow", "dead", 1)]
    assert "longer than 0.1 s" in inbox.rows("SELECT error FROM hookonce.failures")[0][0]
    assert inbox.effects() == ["a"]


def test_handler_is_cut_off_inside_a_query(inbox):
    def slow(_, tx):
        tx.execute(text("SELECT pg_sleep(30)"))

    inbox.on(slow, attempts=1, timeout=timedelta(seconds=0.1))
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.runs() == [("a", "slow", "dead", 1), ("b", "slow", "dead", 1)]


def test_handler_that_nothing_ends_ends_with_its_process():
    code = """
import time
from datetime import timedelta
from hookonce.jobs.attempts.time_limit import TimeLimit
with TimeLimit(grace=timedelta(seconds=0.2)) as clock, clock.limit(timedelta(seconds=0.1)):
    while True:
        try:
            time.sleep(10)
        except BaseException:
            pass
"""

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60, check=False
    )

    assert done.returncode == 1
