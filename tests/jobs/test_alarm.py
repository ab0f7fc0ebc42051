import io
import signal
import sys
import time
from datetime import timedelta

import pytest

from jobs.alarm import Alarm, TimeUp

LONG = timedelta(hours=1)


def test_alarm_cuts_what_takes_too_long():
    began = time.monotonic()

    with pytest.raises(TimeUp), Alarm() as alarm, alarm.limit(timedelta(seconds=0.05)):
        time.sleep(30)

    assert time.monotonic() - began < 10


def test_alarm_puts_back_what_it_found():
    before = signal.getsignal(signal.SIGALRM)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1000)
        with Alarm() as alarm, alarm.limit(LONG):
            pass
        left, again = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

    assert signal.getsignal(signal.SIGALRM) == before
    assert 990 < left <= 1000
    assert again == 0


def test_alarm_that_rings_while_it_is_put_back_is_put_back():
    def ring_on_leaving(frame, event, _):
        if event == "call" and frame.f_code is Alarm.unset.__code__:
            signal.getsignal(signal.SIGALRM)(signal.SIGALRM, frame)
            rung.append(True)

    rung, before = [], sys.gettrace()
    try:
        with Alarm() as alarm, alarm.limit(LONG):
            sys.settrace(ring_on_leaving)
    finally:
        sys.settrace(before)
        left = signal.setitimer(signal.ITIMER_REAL, 0)

    assert (rung, left) == ([True], (0, 0))


def test_alarm_needs_no_standard_error_that_is_a_file(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with pytest.raises(TimeUp), Alarm() as alarm, alarm.limit(timedelta(seconds=0.05)):
        time.sleep(2)


def test_alarm_rings_after_an_attempt_that_put_another_in_its_place():
    with Alarm() as alarm:
        with alarm.limit(LONG):
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        with pytest.raises(TimeUp), alarm.limit(timedelta(seconds=0.05)):
            time.sleep(2)
