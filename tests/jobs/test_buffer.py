"""Runs that are claimed and not started yet: in their claim's order, in time, and none is forgotten."""

import time
from types import SimpleNamespace

import pytest

from hookonce.jobs.buffer import Buffer

LATER = 60


def runs_of(token, count):
    return [SimpleNamespace(token=token, number=number) for number in range(count)]


def anything(_run):
    return True


@pytest.fixture
def buffer():
    return Buffer()


def put(buffer, runs, seconds=LATER):
    buffer.put(runs, time.monotonic() + seconds)
    return runs


def test_runs_of_a_claim_are_taken_in_its_order(buffer):
    runs = put(buffer, runs_of("claim", 3))

    assert buffer.take(lambda run: run.number) is None
    assert [buffer.take(anything) for _ in range(4)] == [*runs, None]


def test_run_that_may_not_start_keeps_only_its_own_claim_waiting(buffer):
    first = put(buffer, runs_of("first", 2))
    second = put(buffer, runs_of("second", 2))

    taken = [buffer.take(lambda run: run is not first[0]) for _ in range(3)]

    assert taken == [*second, None]
    assert len(buffer) == 2


def test_late_run_is_given_back_and_not_started(buffer):
    late = put(buffer, runs_of("late", 2), -1)
    put(buffer, runs_of("claim", 1))

    assert buffer.take(anything).token == "claim"
    assert buffer.take(anything) is None
    assert buffer.take_late(anything) == late
    assert len(buffer) == 0


def test_first_run_of_a_claim_is_started_even_if_it_is_late(buffer):
    late = put(buffer, runs_of("late", 2), -1)

    assert buffer.take_first() is late[0]
    assert buffer.take(anything) is None


def test_run_that_can_not_be_started_any_more_is_given_back_without_its_neighbours(buffer):
    runs = put(buffer, runs_of("claim", 4))

    assert buffer.take_late(lambda run: run.number != 1) == [runs[1]]
    assert [buffer.take(anything) for _ in range(3)] == [runs[0], *runs[2:]]


def test_all_runs_are_given_back_where_none_may_start(buffer):
    runs = put(buffer, [*runs_of("first", 2), *runs_of("second", 1)])

    assert buffer.take_late() == runs
    assert (len(buffer), buffer.take_late()) == (0, [])


def test_run_that_was_put_back_is_the_first_of_its_claim_again(buffer):
    runs = put(buffer, runs_of("claim", 3))

    buffer.put_back(buffer.take(anything))

    assert len(buffer) == 3
    assert [buffer.take(anything) for _ in runs] == runs


def test_run_that_was_put_back_alone_is_given_back(buffer):
    [run] = put(buffer, runs_of("claim", 1))

    buffer.put_back(buffer.take(anything))

    assert buffer.take(anything) is None
    assert buffer.take_late(anything) == [run]
