import asyncio
import contextlib
import time
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text

from hookonce import GiveUp, RetryLater
from tests.support.inbox import effect


def test_handler_gets_the_event_as_it_was_sent(inbox):
    seen = []
    inbox.on(lambda event, _: seen.append(event))
    inbox.deliver(
        "evt_1", body=b'{"id": "evt_1", "type": "invoice.paid", "n": 1}', headers='{"user-agent": "Stripe"}'
    )

    inbox.work()

    (event,) = seen
    assert (event.event_id, event.source, event.provider, event.type) == (
        "evt_1",
        "stripe",
        "stripe",
        "invoice.paid",
    )
    assert (event.attempt, event.repeat_of, event.headers) == (1, None, {"user-agent": "Stripe"})
    assert event.raw == b'{"id": "evt_1", "type": "invoice.paid", "n": 1}'
    assert event.data["n"] == 1


def test_handler_sees_which_event_is_a_test(inbox):
    seen = []
    inbox.on(lambda event, _: seen.append((event.event_id, event.is_test)))
    inbox.deliver("evt_1", is_test=True)
    inbox.deliver("evt_2")

    inbox.work()

    assert sorted(seen) == [("evt_1", True), ("evt_2", False)]


def test_handler_result_is_stored_with_the_run(inbox):
    inbox.on(lambda *_: {"credited": True})
    inbox.deliver("a")

    inbox.work()

    assert inbox.rows("SELECT status, result FROM hookonce.run_states") == [("done", {"credited": True})]


@pytest.mark.parametrize("result", [object(), float("nan"), {1: {2}}], ids=["object", "nan", "set"])
def test_handler_result_that_is_no_json_is_a_failed_attempt(inbox, result):
    inbox.on(lambda *_: result, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.rows("SELECT status, result FROM hookonce.run_states") == [("dead", None)]
    assert "handler returns None or JSON" in inbox.rows("SELECT error FROM hookonce.failures")[0][0]


def test_failed_attempt_leaves_no_effect_and_is_tried_again(inbox):
    def shaky(event, tx):
        effect(event, tx)
        if event.attempt < 3:
            raise RuntimeError("not yet")

    inbox.on(shaky)
    inbox.deliver("a")

    assert inbox.work() == 3
    assert inbox.effects() == ["a"]
    assert inbox.runs() == [("a", "shaky", "done", 3)]
    assert inbox.rows("SELECT attempt, split_part(error, ' (', 1) FROM hookonce.failures ORDER BY id") == [
        (1, "RuntimeError: not yet"),
        (2, "RuntimeError: not yet"),
    ]


def test_handler_finds_what_the_one_before_has_committed(inbox):
    def counting(event, tx):
        effect(event, tx)
        seen.append(inbox.effects())

    seen = []
    inbox.on(counting)
    inbox.deliver("a", "b")

    inbox.work()

    assert seen == [[], ["a"]]


def test_effect_that_breaks_a_deferred_constraint_is_a_failed_attempt(inbox):
    inbox.connection.execute("CREATE TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")

    def twice(event, tx):
        effect(event, tx)
        tx.execute(text("INSERT INTO once VALUES (1), (:n)"), {"n": 1 if event.event_id == "a" else 2})

    inbox.on(twice, attempts=1)
    inbox.deliver("a", "b", "c")

    inbox.work()

    assert [row[2] for row in inbox.runs()] == ["dead", "done", "dead"]
    assert inbox.effects() == ["b"]


def test_run_is_dead_after_its_last_attempt(inbox):
    def broken(*_):
        raise RuntimeError("no")

    inbox.on(broken)
    inbox.deliver("a")

    assert inbox.work() == 3
    assert inbox.runs() == [("a", "broken", "dead", 3)]
    assert inbox.rows("SELECT status, due_at FROM hookonce.event_states") == [("dead", None)]


def test_give_up_ends_a_run_at_once(inbox):
    def hopeless(*_):
        raise GiveUp("no such customer")

    inbox.on(hopeless)
    inbox.deliver("a")

    assert inbox.work() == 1
    assert inbox.runs() == [("a", "hopeless", "dead", 1)]
    assert inbox.rows("SELECT error FROM hookonce.failures") == [("GiveUp: no such customer",)]


def test_retry_later_waits_without_counting(inbox):
    def patient(*_):
        raise RetryLater(timedelta(hours=1))

    inbox.on(patient)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "patient", "waiting", 0)]
    assert inbox.rows("SELECT due_at > now() + interval '59 minutes' FROM hookonce.event_states") == [(True,)]


def test_retry_later_may_ask_for_ages(inbox):
    def patient(*_):
        raise RetryLater(timedelta.max)

    inbox.on(patient)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "patient", "waiting", 0)]


def test_verdict_that_says_nothing_sensible_ends_its_run_and_no_other(inbox):
    class Speechless(GiveUp):
        def __str__(self):
            raise ValueError

    class Never(RetryLater):
        def __init__(self):
            pass  # and so without a delay

    def hopeless(*_):
        raise Speechless

    def patient(*_):
        raise Never

    for handler in (hopeless, patient, effect):
        inbox.on(handler, attempts=1)
    inbox.deliver("a")

    assert inbox.work() == 3
    assert inbox.runs() == [
        ("a", "effect", "done", 1),
        ("a", "hopeless", "dead", 1),
        ("a", "patient", "dead", 1),
    ]


def test_handler_that_swallows_a_database_error_has_failed(inbox):
    def swallower(_, tx):
        with contextlib.suppress(Exception):
            tx.execute(text("SELECT 1 / 0"))

    inbox.on(swallower, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "swallower", "dead", 1)]


class Unspeakable(BaseException):
    def __str__(self):
        raise RuntimeError


class OfTheUsers(BaseException):
    pass


class AsksOddly(RetryLater):
    def __init__(self):
        pass

    @property
    def delay(self):
        raise SystemExit


def unspeakable(raised):
    def refuse(_):
        raise raised

    return type("UnspeakableError", (Exception,), {"__str__": refuse, "__notes__": property(refuse)})


def unreadable(name):
    def refuse(*_):
        raise SystemExit

    member = refuse if name == "__getattribute__" else property(refuse, refuse)
    return type("UnreadableError", (Exception,), {name: member})


def caused_by(kind):
    error = ValueError()
    error.__cause__ = kind()
    return error


READ = ["__cause__", "__context__", "__suppress_context__", "__traceback__", "__class__", "__getattribute__"]
"""Attributes of an error that are read where it ends an attempt."""


@pytest.mark.parametrize(
    "error",
    [
        *(
            SystemExit,
            MemoryError,
            RecursionError,
            asyncio.CancelledError,
            Unspeakable,
            OfTheUsers,
            AsksOddly,
        ),
        *map(unspeakable, [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError]),
        unspeakable(OfTheUsers),
        *map(unreadable, READ),
        *(caused_by(unreadable(name)) for name in READ),
    ],
)
def test_handler_may_raise_anything(inbox, error):
    def wild(*_):
        raise error

    inbox.on(wild, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "wild", "dead", 1)]


def test_stale_worker_can_not_finish_what_another_has_taken(inbox):
    def overtaken(event, tx):
        effect(event, tx)
        inbox.steal()

    inbox.on(overtaken)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == []
    assert inbox.runs() == [("a", "overtaken", "running", 1)]


def test_event_whose_body_was_dropped_is_dead_and_says_why(inbox):
    inbox.on(effect)
    inbox.deliver("a")
    inbox.connection.execute("DELETE FROM hookonce.bodies")

    inbox.work()

    assert inbox.runs() == [("a", "effect", "dead", 1)]
    assert "dropped by retention" in inbox.rows("SELECT error FROM hookonce.failures")[0][0]


def test_idempotency_key_is_the_same_for_every_attempt_and_differs_by_handler(inbox):
    def one(event, _):
        keys.append(event.idempotency_key)
        if event.attempt == 1:
            raise RuntimeError

    def two(event, _):
        keys.append(event.idempotency_key)

    keys = []
    inbox.on(one)
    inbox.on(two)
    inbox.deliver("a")

    inbox.work()

    assert len(keys) == 3
    assert len(set(keys)) == 2


def test_handler_that_leaves_a_copy_open_does_not_hang_its_worker(inbox):
    def leaver(_, tx):
        copies.append(tx.connection.driver_connection.cursor().copy("COPY effects FROM STDIN"))
        copies[-1].__enter__()

    copies = []
    inbox.on(leaver, attempts=1)
    inbox.on(effect)
    inbox.deliver("a")

    inbox.work()

    assert [row[2] for row in inbox.runs()] == ["done", "dead"]
    for copy in copies:
        with contextlib.suppress(psycopg.Error):
            copy.__exit__(None, None, None)


def test_handler_may_do_other_things_longer_than_the_server_lets_transactions_idle(inbox):
    (database_name,) = inbox.rows("SELECT current_database()")[0]
    inbox.connection.execute(f'ALTER DATABASE "{database_name}" SET idle_in_transaction_session_timeout = 50')

    def slow(event, tx):
        effect(event, tx)
        time.sleep(0.2)

    inbox.on(slow)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "slow", "done", 1)]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_handler_that_raises_what_ends_processes_fails_and_takes_nobody_along(inbox, kind):
    interrupted = []

    def once(event, tx):
        effect(event, tx)
        if not interrupted:
            interrupted.append(event)
            raise kind

    inbox.on(once)
    inbox.deliver("a", "b")

    inbox.work()

    assert inbox.effects() == ["a", "b"]
    assert inbox.runs() == [("a", "once", "done", 2), ("b", "once", "done", 1)]
