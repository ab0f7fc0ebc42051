"""How slowly a body may come: at a rate, with a lag, and not for ever; and what ends a read that a thread waits in."""

import socket
import threading
from datetime import timedelta

import pytest

from hookonce.receiver.processes.waits import run
from hookonce.receiver.web import slow_bodies
from hookonce.receiver.web.request import WsgiRequest
from hookonce.receiver.web.slow_bodies import BodyTime

KB, MB = 1000, 1_000_000


def seconds_taken(size, rate, *, piece=16 * KB, stands_still_at=None, stands_still_for=0.0):
    """When a body of `size` bytes that comes at `rate` bytes a second is there, None if it is given up before."""
    now, come, time = 0.0, 0, BodyTime(0.0)
    while come < size:
        more = min(piece, size - come)
        now += more / rate
        if stands_still_at is not None and come < stands_still_at <= come + more:
            now += stands_still_for
        if now > time.until:
            return None
        time.extend(more, now)
        come += more
    return now


@pytest.mark.parametrize(("megabytes", "megabits"), [(24, 12), (5, 3), (1, 0.7), (25, 4), (0.1, 0.15)])
def test_body_at_the_rate_of_a_slow_line_is_taken(megabytes, megabits):
    taken = seconds_taken(megabytes * MB, megabits * MB / 8)

    assert taken == pytest.approx(megabytes / megabits * 8)


@pytest.mark.parametrize(("size", "rate"), [(1000, 1), (MB, 1000), (MB, 10 * KB), (60 * MB, 900 * KB)])
def test_body_below_the_rate_or_beyond_the_total_is_given_up(size, rate):
    assert seconds_taken(size, rate, piece=max(1, rate // 4)) is None


@pytest.mark.parametrize(("stillness", "is_taken"), [(7, True), (9, False)])
def test_body_may_stand_still_for_eight_seconds_however_much_has_come(stillness, is_taken):
    taken = seconds_taken(20 * MB, 10 * MB, stands_still_at=15 * MB, stands_still_for=stillness)

    assert (taken is not None) == is_taken


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(slow_bodies.limits, "BODY_LAG", timedelta(seconds=0.2))
    monkeypatch.setattr(slow_bodies.limits, "LOOK", timedelta(seconds=0.05))
    monkeypatch.setattr(slow_bodies, "_WATCH", slow_bodies.Watch())


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["gunicorn.socket", "werkzeug.socket"])
def test_read_that_takes_too_long_ends_and_the_answer_can_be_written(name):
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as body:
        theirs.sendall(b"x")
        request = WsgiRequest({"REQUEST_METHOD": "POST", "PATH_INFO": "/", "wsgi.input": body, name: ours})

        with pytest.raises(TimeoutError):
            run(request.piece(1000))
        ours.sendall(b"answer")

        assert theirs.recv(100) == b"answer"


@pytest.mark.usefixtures("impatient")
def test_read_that_is_in_time_is_watched_no_longer():
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as body:
        theirs.sendall(b"x" * 10)
        request = WsgiRequest(
            {"REQUEST_METHOD": "POST", "PATH_INFO": "/", "wsgi.input": body, "gunicorn.socket": ours}
        )

        assert run(request.piece(10)) == b"x" * 10
        late = threading.Timer(0.5, theirs.sendall, [b"next"])
        late.start()
        assert ours.recv(100) == b"next"
        late.join()
