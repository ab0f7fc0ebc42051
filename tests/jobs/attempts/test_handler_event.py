"""A capability of a handler's event is a class and a maker: nothing else of an attempt knows of it."""

import time
from datetime import timedelta

import pytest

from hookonce.jobs.attempts.handler_event import MAKERS
from hookonce.jobs.event import Capability, Postponed
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.states import Waits
from tests.support.inbox import effect

DONE = "SELECT count(*) FROM hookonce.runs WHERE status = 'done'"


class Toy(Capability):
    """Puts its run off, leaves calls, and may be left in the midst of something."""

    def __init__(self):
        self.calls = []
        self.is_left = False

    def put_off(self, **how):
        error = Postponed("not yet")
        error.delay = timedelta(0)
        error.__dict__.update(how)
        raise error

    def require_ended(self):
        if self.is_left:
            raise RuntimeError("the toy is left")


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(MAKERS, "toy", lambda *_: Toy())


def toy_of(event):
    return event.capability("toy")


def test_capability_ends_an_attempt_uncharged(inbox):
    def waits(event, tx):
        effect(event, tx)
        attempts.append(event.attempt)
        if len(attempts) < 3:
            toy_of(event).put_off()

    attempts = []
    inbox.on(waits, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert attempts == [1, 1, 1]
    assert inbox.runs() == [("a", "waits", "done", 1)]
    assert inbox.effects() == ["a"]


def test_capability_gives_its_run_a_reason_to_wait_and_writes_with_that_end(inbox):
    def waits(event, _tx):
        toy_of(event).put_off(
            waits=Waits.HELD,
            delay=timedelta(hours=1),
            also=lambda ledger: ledger.execute("INSERT INTO effects VALUES ('noted')"),
        )

    inbox.on(waits, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.rows("SELECT waits, attempts, token, due_at > now() FROM hookonce.queue") == [
        (Waits.HELD, 0, None, True)
    ]
    assert inbox.effects() == ["noted"]


def test_calls_that_a_capability_leaves_are_made_once_the_end_is_durable_and_told(inbox, caplog):
    def leaves(event, tx):
        effect(event, tx)
        toy_of(event).calls.append(lambda: noted.append((inbox.rows(DONE), len(ends()), event.event_id)))

    def ends():
        return [each for each in caplog.records if each.getMessage() == "run"]

    noted = []
    caplog.set_level("INFO", logger="hookonce.jobs.attempts")
    inbox.on(leaves)
    inbox.deliver("a", "b", "c")

    inbox.work()

    assert noted == [([(n,)], n, name) for n, name in enumerate("abc", 1)]


def test_calls_are_made_of_each_event_of_a_batch(inbox):
    def leaves(events, _tx):
        for event in events:
            toy_of(event).calls.append(lambda name=event.event_id: noted.append((inbox.rows(DONE), name)))

    noted = []
    inbox.on(leaves, batch=BatchSize(2))
    inbox.deliver("a", "b")

    inbox.work()

    assert sorted(noted) == [([(2,)], "a"), ([(2,)], "b")]


def test_calls_of_an_attempt_that_fails_are_not_made(inbox):
    def fails(event, _tx):
        toy_of(event).calls.append(lambda: noted.append(event.attempt))
        if event.attempt == 1:
            raise ValueError

    noted = []
    inbox.on(fails)
    inbox.deliver("a")

    inbox.work()

    assert noted == [2]


@pytest.mark.parametrize("harm", [lambda: 1 / 0, lambda: time.sleep(30)], ids=["raises", "takes too long"])
def test_call_that_fails_harms_neither_its_run_nor_those_behind_it(inbox, caplog, harm):
    def leaves(event, tx):
        effect(event, tx)
        toy_of(event).calls += [harm, lambda: noted.append(event.event_id)]

    noted = []
    inbox.on(leaves, timeout=timedelta(seconds=2))  # a second for each call
    inbox.deliver("a", "b")

    inbox.work()

    assert noted == inbox.effects() == ["a", "b"]
    assert {row[2:] for row in inbox.runs()} == {("done", 1)}
    assert [
        each.getMessage().partition(":")[0] for each in caplog.records if each.levelname == "WARNING"
    ] == ["a call after the commit failed"] * 2


def test_handler_that_returns_in_the_midst_of_a_capability_fails(inbox):
    def leaves(event, tx):
        effect(event, tx)
        toy_of(event).is_left = event.attempt == 1

    inbox.on(leaves)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "leaves", "done", 2)]
    assert inbox.effects() == ["a"]


def test_capability_is_made_once_for_each_attempt(inbox):
    def asks(event, _tx):
        assert toy_of(event) is toy_of(event)
        found.append(toy_of(event))
        if event.attempt == 1:
            raise ValueError

    found = []
    inbox.on(asks)
    inbox.deliver("a")

    inbox.work()

    assert len(set(found)) == 2
