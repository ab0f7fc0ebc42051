"""Mistakes that waits made by hand are found with; what is asked of ours must notice each."""

import threading
from datetime import timedelta

import pytest

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.capabilities import waits as capability
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver import failpoints
from hookonce.receiver.ledger import waits
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.maintenance import retention
from tests.support.waiting import until
from tests.support.waiting_handlers import DAYS, deliver, fulfil, on, prune, sleep

IS_BLOCKED = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
LITTLE = timedelta(seconds=1)


class Meeting:
    """Does something once, when a process comes to a place."""

    def __init__(self, place, act):
        self.place, self.act = place, act

    def __call__(self, name):
        if name == self.place:
            self.place = None
            self.act()


def met(inbox, place, act):
    failpoints.counter = Meeting(place, act)
    try:
        inbox.work()
    finally:
        failpoints.counter = None


def worked(inbox):
    """Work with another worker, on whatever is due."""
    other = SingleSlot(inbox.settings, inbox.registry)
    other.run_due()
    other.close()


def answer(inbox):
    """What the order's handler got, a little later."""
    for _ in range(3):
        sleep(inbox, LITTLE)
        inbox.work()
    return inbox.effects()


def arrives_while_it_is_declared(inbox):
    threads = []

    def arrive():
        deliver(inbox, "c", "check", n=7)
        threads.append(threading.Thread(target=worked, args=[inbox]))
        threads[0].start()
        until(lambda: not threads[0].is_alive() or inbox.rows(IS_BLOCKED) != [(0,)])

    deliver(inbox, "o", "order")
    met(inbox, "wait.declared", arrive)
    threads[0].join()
    return answer(inbox)


def arrives_before_the_attempt_has_ended(inbox):
    def arrive():
        deliver(inbox, "c", "check", n=7)
        worked(inbox)

    deliver(inbox, "o", "order")
    met(inbox, "failure.rolled_back", arrive)
    return answer(inbox)


def dies_once_the_arrival_s_run_is_done(inbox):
    deliver(inbox, "c", "check", n=7)
    with pytest.MonkeyPatch.context() as patch:  # what comes after the commit is never done
        patch.setattr(Executor, "_tell_end", lambda *_: None)
        inbox.work()
    deliver(inbox, "o", "order")
    return answer(inbox)


def is_called_again_and_again_until_its_time_is_over(inbox):
    deliver(inbox, "o", "order")
    inbox.work()
    for _ in range(3):
        sleep(inbox, DAYS / 3)
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
        inbox.work()
    return inbox.effects()


def came_long_before(inbox):
    deliver(inbox, "c", "check", n=7)
    deliver(inbox, "x", "order", sha="another")
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.arrivals SET at = now() - interval '2 days'")
    prune(inbox)
    deliver(inbox, "o", "order")
    return answer(inbox)


QUESTIONS = {
    arrives_while_it_is_declared: ["o 7"],
    arrives_before_the_attempt_has_ended: ["o 7"],
    dies_once_the_arrival_s_run_is_done: ["o 7"],
    is_called_again_and_again_until_its_time_is_over: ["o None"],
    came_long_before: ["o 7"],
}


def is_right(inbox, question):
    """Return whether a question is answered as it should be."""
    on(inbox, fulfil)
    register_handlers(inbox.connection, inbox.registry.rows(), inbox.registry.declarations())
    return question(inbox) == QUESTIONS[question]


def noted_after(events, _tx, **places):
    """Note what has come once the run is done."""
    events[0].capability(capability.WAITS).calls = [lambda: note_within(events, _tx, **places)]


note_within = capability.note
MISTAKES = {
    arrives_while_it_is_declared: (waits, "_LOCK", "SELECT FROM unnest(%s::bigint[])"),
    arrives_before_the_attempt_has_ended: (
        waits,
        "_WAKE",
        waits._WAKE.replace("q.token IS NULL", "true"),  # noqa: SLF001
    ),
    dies_once_the_arrival_s_run_is_done: (capability, "note", noted_after),
    is_called_again_and_again_until_its_time_is_over: (
        waits,
        "_DECLARE",
        waits._DECLARE.replace(  # noqa: SLF001
            "DO NOTHING", "(event, handler, cycle, name) DO UPDATE SET until = excluded.until"
        ),
    ),
    came_long_before: (
        retention,
        "_FORGET_ARRIVALS",
        retention._FORGET_ARRIVALS.replace("WHERE at < ", "WHERE at < %(now)s - interval '1 day' OR at < "),  # noqa: SLF001
    ),
}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_question_is_answered_right(inbox, question):
    assert is_right(inbox, question)


@pytest.mark.parametrize("question", MISTAKES, ids=lambda question: question.__name__)
def test_mistake_is_noticed(inbox, monkeypatch, question):
    monkeypatch.setattr(*MISTAKES[question])

    assert not is_right(inbox, question)
