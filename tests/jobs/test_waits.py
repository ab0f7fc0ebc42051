import logging
import os
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from enum import Enum

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Session

from hookonce.jobs.capabilities import waits as capability
from hookonce.jobs.handlers import HandlerError
from hookonce.jobs.registration import on as on_decorator
from hookonce.jobs.registration import on_batch
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver import failpoints
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger import waits
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.maintenance import erasure
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.replay import discards
from hookonce.receiver.ledger.replay.events import replay
from hookonce.receiver.ledger.waits import Awaited
from tests.support.waiting import until
from tests.support.waiting_handlers import CI, DAYS, deliver, effect, fulfil, on, prune, sleep


def in_session(event, session: Session):
    fulfil(event, session)


async def in_coroutine(event, tx: AsyncConnection):
    found = await event.wait("ci", event.data["sha"], timeout=DAYS)
    await tx.run_sync(lambda connection: effect(event, connection, found))


def by_name(inbox):
    return {(event, handler): (status, attempts) for event, handler, status, attempts in inbox.runs()}


def errors(inbox):
    return [row[0] for row in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id")]


@pytest.mark.parametrize("handler", [fulfil, in_session, in_coroutine])
@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
def test_event_that_came_before_or_comes_after_is_the_answer(inbox, handler, is_first):
    on(inbox, handler)

    for kind in ("check", "order") if is_first else ("order", "check"):
        deliver(inbox, kind[0], kind, n=7)
        inbox.work()

    assert inbox.effects() == ["o 7"]
    assert by_name(inbox) == {
        ("c", "waits for stripe check"): ("done", 1),
        ("o", handler.__name__): ("done", 1),
    }


def test_attempt_that_waits_uses_none_up_and_holds_nothing(inbox):
    on(inbox, fulfil)
    deliver(inbox, "o", "order")

    inbox.work()

    assert inbox.rows("SELECT attempts, token, waits FROM hookonce.queue") == [(0, None, None)]
    assert inbox.rows("SELECT * FROM hookonce.claims") == []
    assert inbox.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'") == []
    assert inbox.rows(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
    ) == [(0,)]


def test_none_is_the_answer_once_the_time_is_over_whatever_comes_later(inbox):
    def twice(event, tx):
        found = event.wait("ci", "abc", timeout=DAYS)
        effect(event, tx, found)
        if event.attempt == 1:
            deliver(inbox, "c", "check", n=7)
            raise LookupError("no")

    on(inbox, twice)
    deliver(inbox, "o", "order")
    inbox.work()

    sleep(inbox, DAYS)
    inbox.work()
    inbox.work()

    assert inbox.effects() == ["o None"]


def test_time_is_counted_from_the_first_call(inbox):
    on(inbox, fulfil)
    deliver(inbox, "o", "order")
    inbox.work()

    for _ in range(3):
        sleep(inbox, DAYS / 3)
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
        inbox.work()

    assert inbox.effects() == ["o None"]


def test_answer_stays_when_the_attempt_that_got_it_fails(inbox):
    def fails_once(event, tx):
        effect(event, tx, event.wait("ci", "abc", timeout=DAYS))
        if event.attempt == 1:
            inbox.connection.execute("DELETE FROM hookonce.arrivals")
            raise LookupError("no")

    on(inbox, fails_once)
    deliver(inbox, "c", "check", n=7)
    deliver(inbox, "o", "order")

    inbox.work()

    assert inbox.effects() == ["o 7"]


def test_first_event_of_a_value_is_the_answer_and_all_later_ones_are_not_kept(inbox):
    on(inbox, fulfil)
    for n in range(5):
        deliver(inbox, f"c{n}", "check", n=n)
    inbox.work()
    deliver(inbox, "o", "order")

    inbox.work()

    assert inbox.effects() == ["o 0"]
    assert inbox.rows("SELECT count(*) FROM hookonce.arrivals") == [(1,)]


def test_two_handlers_wait_for_one_event_and_one_for_several_in_turn(inbox):
    def both(event, tx):
        first = event.wait("ci", "abc", timeout=DAYS)
        second = event.wait("review", "abc", timeout=DAYS)
        effect(event, tx, {"n": first["n"] + second["n"]})

    on(inbox, fulfil)
    on(inbox, both, awaits=(("ci", CI), ("review", Awaited("stripe", "review", "$.sha"))))
    deliver(inbox, "o", "order")
    inbox.work()
    deliver(inbox, "c", "check", n=7)
    inbox.work()

    deliver(inbox, "r", "review", n=10)
    inbox.work()

    assert inbox.effects() == ["o 17", "o 7"]


def test_event_may_wait_for_another_of_its_own_type(inbox):
    def paired(event, tx):
        effect(event, tx, event.wait("ci", "b" if event.data["sha"] == "a" else "a", timeout=DAYS))

    on(inbox, paired, awaits=(("ci", Awaited("stripe", "order", "$.sha")),))
    deliver(inbox, "o1", "order", sha="a", n=1)
    inbox.work()

    deliver(inbox, "o2", "order", sha="b", n=2)
    inbox.work()

    assert inbox.effects() == ["o1 2", "o2 1"]


def test_wait_of_a_provider_and_a_pattern_meets_all_of_them(inbox):
    on(inbox, fulfil, awaits=(("ci", Awaited("acme", "check*", "$.sha")),))
    deliver(inbox, "o", "order")
    inbox.work()

    deliver(inbox, "c", "check_suite", n=7)
    inbox.work()

    assert inbox.effects() == ["o 7"]


@pytest.mark.parametrize(("told", "asked"), [(7, "7"), ("7", 7), (7.0, 7), (2.5, "2.5")])
def test_numbers_are_told_apart_as_they_are_written(inbox, told, asked):
    on(inbox, lambda_named(asked))
    deliver(inbox, "c", "check", n=1, sha=told)
    deliver(inbox, "o", "order")

    inbox.work()

    assert inbox.effects() == ["o 1"]


def lambda_named(asked):
    def waits_for_it(event, tx):
        effect(event, tx, event.wait("ci", asked, timeout=DAYS))

    return waits_for_it


def test_steps_before_a_wait_are_done_once(inbox):
    keys = []

    def with_step(event, tx):
        event.step("charge", lambda key: keys.append(key) or 1)
        effect(event, tx, event.wait("ci", "abc", timeout=DAYS))

    on(inbox, with_step)
    deliver(inbox, "o", "order")
    inbox.work()
    deliver(inbox, "c", "check", n=7)

    inbox.work()

    assert (len(keys), inbox.effects()) == (1, ["o 7"])


def writes_first(event, tx):
    tx.execute(text("INSERT INTO effects VALUES ('before')"))
    event.wait("ci", event.data["sha"], timeout=DAYS)


async def writes_first_async(event, tx: AsyncConnection):
    await tx.execute(text("INSERT INTO effects VALUES ('before')"))
    await event.wait("ci", event.data["sha"], timeout=DAYS)


@pytest.mark.parametrize("handler", [writes_first, writes_first_async])
def test_write_before_a_wait_is_made_again_and_told_once(inbox, caplog, handler):
    on(inbox, handler)
    on(inbox, fulfil, pattern="other")
    for n in range(3):
        deliver(inbox, f"o{n}", "order", sha=str(n))
    deliver(inbox, "x", "other")
    inbox.work()
    deliver(inbox, "c", "check", sha="1")

    inbox.work()

    told = [each.getMessage() for each in caplog.records if "writes before" in each.getMessage()]
    said = "writes before it waits for 'ci'; these writes are rolled back, and made again once it goes on"
    assert told == [f"handler {handler.__name__} {said}"]
    assert inbox.effects() == ["before"]


def test_handler_that_goes_on_though_it_is_to_wait_fails(inbox):
    def catches(event, _):
        with suppress(Exception):
            event.wait("ci", "abc", timeout=DAYS)

    on(inbox, catches, attempts=1)
    deliver(inbox, "o", "order")

    inbox.work()

    assert "let it out" in errors(inbox)[0]


# What is under way, and what people do


IS_BLOCKED = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_event_that_comes_while_its_wait_is_declared_is_the_answer(inbox, monkeypatch):
    def arrive(place):
        if place == "wait.declared" and not threads:
            deliver(inbox, "c", "check", n=7)
            threads.append(threading.Thread(target=other.run_due))
            threads[0].start()
            until(lambda: not threads[0].is_alive() or inbox.rows(IS_BLOCKED) != [(0,)])

    threads = []
    on(inbox, fulfil)
    other = SingleSlot(inbox.settings, inbox.registry)
    deliver(inbox, "o", "order")
    monkeypatch.setattr(failpoints, "counter", arrive)

    inbox.work()
    threads[0].join()
    other.close()
    for _ in range(2):
        sleep(inbox, timedelta(seconds=1))
        inbox.work()

    assert inbox.effects() == ["o 7"]


def test_arrival_comes_again_uncharged_while_who_waits_is_under_its_lease(inbox):
    on(inbox, fulfil)
    deliver(inbox, "o", "order")
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.queue SET token = gen_random_uuid()")
    deliver(inbox, "c", "check", n=7)
    inbox.work()

    assert inbox.rows("SELECT count(*) FROM hookonce.arrivals") == [(1,)]
    assert by_name(inbox)["c", "waits for stripe check"] == ("waiting", 0)

    inbox.connection.execute("UPDATE hookonce.queue SET token = NULL")
    sleep(inbox, timedelta(seconds=1))
    inbox.work()
    assert inbox.effects() == ["o 7"]


def test_run_that_is_locked_is_not_waited_for(inbox, database_url):
    on(inbox, fulfil)
    order = deliver(inbox, "o", "order")
    inbox.work()
    deliver(inbox, "c", "check", n=7)

    with connections.connect(database_url) as other, other.transaction():
        other.execute("SELECT FROM hookonce.queue WHERE event = %s FOR UPDATE", [order])
        inbox.work()
        assert by_name(inbox)["c", "waits for stripe check"] == ("waiting", 0)

    sleep(inbox, timedelta(seconds=1))
    inbox.work()
    assert inbox.effects() == ["o 7"]


def test_replay_begins_the_wait_anew(inbox):
    on(inbox, fulfil)
    order = deliver(inbox, "o", "order")
    inbox.work()
    sleep(inbox, DAYS)
    inbox.work()
    deliver(inbox, "c", "check", n=7)
    inbox.work()

    [*replay(inbox.connection, [order], "me", again=True)]
    inbox.work()

    assert inbox.effects() == ["o 7", "o None"]


def test_discarding_or_erasing_ends_a_wait(inbox):
    on(inbox, fulfil)
    order = deliver(inbox, "o", "order")
    inbox.work()

    discards.discard(inbox.connection, [order], "me")
    assert waits.listed(inbox.connection, 10) == []

    deliver(inbox, "c", "check")
    inbox.work()
    assert by_name(inbox) == {
        ("c", "waits for stripe check"): ("done", 1),
        ("o", "fulfil"): ("discarded", 0),
    }
    erasure.erase(inbox.connection, [order], "me")
    assert inbox.rows("SELECT count(*) FROM hookonce.waits") == [(0,)]


def test_wait_is_listed_and_shown_until_it_ends(inbox):
    on(inbox, fulfil)
    order = deliver(inbox, "o", "order")
    inbox.work()

    (wait,) = waits.listed(inbox.connection, 10)
    (run,) = event_details.detail(inbox.connection, order, inbox.settings.keyring).with_content().runs
    assert (wait.event, wait.handler, wait.name, wait.type) == (order, "fulfil", "ci", "check")
    assert wait.until - wait.since == DAYS
    assert (run.waits_for, run.awaited[0].ended_at) == ("event", None)

    check = deliver(inbox, "c", "check")
    inbox.work()
    (run,) = event_details.detail(inbox.connection, order, inbox.settings.keyring).with_content().runs
    assert (waits.listed(inbox.connection, 10), run.awaited[0].answer) == ([], check)


def test_person_has_a_handler_go_on_without_what_it_waits_for(inbox):
    on(inbox, fulfil)
    order = deliver(inbox, "o", "order")
    inbox.work()

    assert waits.give_up(inbox.connection, order, "fulfil", "me")
    inbox.work()

    assert inbox.effects() == ["o None"]
    assert not waits.give_up(inbox.connection, order, "fulfil", "me")
    assert inbox.rows("SELECT action, detail FROM hookonce.audit") == [("wake", {"handler": "fulfil"})]


# What is kept


def test_event_whose_body_went_is_answered_by_its_id(inbox):
    def returns(event, _):
        return event.wait("ci", "abc", timeout=DAYS)

    on(inbox, returns)
    check = deliver(inbox, "c", "check")
    inbox.work()
    inbox.connection.execute("DELETE FROM hookonce.bodies")
    deliver(inbox, "o", "order")

    inbox.work()

    assert inbox.rows("SELECT result FROM hookonce.runs WHERE handler = 'returns'") == [({"event": check},)]


def test_event_that_was_erased_is_waited_for_as_if_it_had_not_come(inbox):
    on(inbox, fulfil)
    check = deliver(inbox, "c", "check")
    inbox.work()
    erasure.erase(inbox.connection, [check], "me")
    deliver(inbox, "o", "order")

    inbox.work()

    assert by_name(inbox)["o", "fulfil"] == ("waiting", 0)


def test_answer_is_read_where_bodies_are_sealed(inbox):
    inbox.settings = replace(inbox.settings, keyring=Keyring([os.urandom(32)]))
    on(inbox, fulfil)
    deliver(inbox, "c", "check", n=7)
    deliver(inbox, "o", "order")

    inbox.work()

    assert inbox.effects() == ["o 7"]


def noted(inbox, days, **changes):
    """Note an arrival of so many days ago."""
    deliver(inbox, "c", "check", **changes)
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.arrivals SET at = now() - %s", [timedelta(days=days)])


def declare(inbox):
    register_handlers(inbox.connection, inbox.registry.rows(), inbox.registry.declarations())


@pytest.mark.parametrize(
    ("days", "has_waited", "left"), [(89, False, 1), (91, False, 0), (2, True, 1), (4, True, 0)]
)
def test_arrivals_are_kept_for_as_long_as_any_handler_has_waited_or_may(inbox, days, has_waited, left):
    on(inbox, fulfil)
    declare(inbox)
    if has_waited:
        deliver(inbox, "o", "order", sha="another")
    noted(inbox, days)

    prune(inbox)

    assert inbox.rows("SELECT count(*) FROM hookonce.arrivals") == [(left,)]


def test_since_when_events_are_noted_is_kept_while_a_worker_declares_it(inbox):
    on(inbox, fulfil)
    declare(inbox)
    (first,) = waits.noted(inbox.connection)

    declare(inbox)
    assert waits.noted(inbox.connection) == [first]
    assert (first.source, first.type, first.place, first.longest_seconds) == (*CI, None)

    inbox.connection.execute("DELETE FROM hookonce.handlers")
    register_handlers(inbox.connection, [])
    assert waits.noted(inbox.connection) == []


# Bad input


def wrong(call):
    """A handler that asks for something that can't be; its error is what is looked at."""

    def asks(event, _):
        call(event)

    return asks


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda event: event.wait("no", "a", timeout=1), 'write it with its @on: awaits={"ci":'),
        (lambda event: event.wait("ci", None, timeout=1), "its value is a NoneType; expected text"),
        (lambda event: event.wait("ci", "", timeout=1), "its value is empty; expected text"),
        (lambda event: event.wait("ci", True, timeout=1), "its value is a bool; expected text"),  # noqa: FBT003
        (lambda event: event.wait("ci", ["a"], timeout=1), "its value is a list; expected text"),
        (lambda event: event.wait("ci", float("nan"), timeout=1), "its value is a float; expected text"),
        (lambda event: event.wait("ci", "a" * 2**20, timeout=1), "a text of 1048576 bytes; expected text"),
        (lambda event: event.wait("ci", "a", timeout=timedelta(days=91)), "90 days at most"),
        (lambda event: event.wait("ci", "a", timeout=-1), "90 days at most"),
        (lambda event: event.wait("ci", "a", timeout="3 days"), "expected seconds or a timedelta"),
        (lambda event: [event.wait("ci", str(n), timeout=0) for n in range(2)], "such as 'ci-1', 'ci-2'"),
    ],
)
def test_wait_that_can_not_be_says_what_to_write(inbox, call, said):
    on(inbox, wrong(call), attempts=1)
    deliver(inbox, "o", "order")

    inbox.work()
    inbox.work()

    assert [said in each for each in errors(inbox)] == [True]
    assert all("\n" not in each for each in errors(inbox))


def test_another_value_on_the_next_attempt_says_where_to_take_it_from(inbox):
    values = iter(["a", "b"])

    def changes(event, _):
        event.wait("ci", next(values), timeout=DAYS)

    on(inbox, changes, attempts=1)
    deliver(inbox, "o", "order")
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")

    inbox.work()

    assert "for another value than in an attempt before" in errors(inbox)[0]


@pytest.mark.parametrize(
    "changes", [{"tx": "none"}, {"batch": capability.BatchSize(10)}], ids=["tx=none", "batch"]
)
def test_wait_without_a_transaction_of_its_own_says_so(inbox, changes):
    def in_batch(events, _):
        events[0].wait("ci", "a", timeout=1)

    def long(event):
        event.wait("ci", "a", timeout=1)

    inbox.on(long if "tx" in changes else in_batch, attempts=1, **changes)
    deliver(inbox, "o", "order")

    inbox.work()

    assert "not for a batch and not with tx='none'" in errors(inbox)[0]


EXAMPLE = ("github", "check_suite", "$.check_suite.head_sha")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "needs name="),
        ({"tx": "none"}, "needs a transaction"),
        ({"awaits": {}}, 'expected {"ci": '),
        ({"awaits": ["ci"]}, 'expected {"ci": '),
        ({"awaits": {"ci": "github"}}, "expected source, type and path"),
        ({"awaits": {"ci": EXAMPLE[:2]}}, "expected source, type and path"),
        ({"awaits": {"": EXAMPLE}}, "expected source, type and path"),
        ({"awaits": {"ci": (*EXAMPLE[:2], "head_sha")}}, "is not a path"),
        ({"awaits": {"ci": (*EXAMPLE[:2], "$.checks[*]")}}, "is not the path of one value"),
        ({"awaits": {"ci": (*EXAMPLE[:2], "$")}}, "is not the path of one value"),
        ({"awaits": {"ci": ("github", "a\0", "$.a")}}, "expected text without NUL"),
    ],
)
def test_declaration_that_can_not_be_says_what_to_write(changes, said):
    function = (lambda _: None) if "tx" in changes else (lambda _, __: None)

    with pytest.raises(HandlerError, match="handler") as raised:
        on_decorator("shop", "order", **({"name": "fulfil", "awaits": {"ci": EXAMPLE}} | changes))(function)

    assert said in str(raised.value)


def test_batch_that_declares_a_wait_is_refused():
    with pytest.raises(HandlerError, match="a batch can't wait; take the events one by one"):
        on_batch("shop", "order", awaits={"ci": EXAMPLE})(lambda _, __: None)


def test_source_that_no_configuration_has_is_told_at_the_start(inbox):
    on(inbox, fulfil, awaits=(("ci", Awaited("stripes", "check", "$.sha")),))

    with pytest.raises(
        HandlerError,
        match="handler 'fulfil' awaits events of 'stripes', no source and no provider; did you mean",
    ):
        inbox.registry.require_places(["stripe"], ["stripe"])


@pytest.mark.parametrize(
    ("values", "what"), [([["a"]] * 3, "a list"), (["a" * 1001, "a" * 1002], "a text of 1001 bytes")]
)
def test_place_that_leads_to_no_value_is_told_once_and_nothing_is_noted(inbox, caplog, values, what):
    capability._told.clear()  # noqa: SLF001  what this process has told before
    on(inbox, fulfil)
    for n, value in enumerate(values):
        deliver(inbox, f"c{n}", "check", sha=value)

    inbox.work()

    told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    said = "expected a place in awaits= that leads to text or a number of at most 1000 bytes"
    assert told == [f"events of stripe check can't be waited for: the value at $.sha is {what}; {said}"]
    assert inbox.rows("SELECT count(*) FROM hookonce.arrivals") == [(0,)]


class Kind(str, Enum):  # noqa: UP042  whose text is its name
    ABC = "abc"


class Number(int, Enum):
    SEVEN = 7


@pytest.mark.parametrize(
    ("value", "text"),
    [(Kind.ABC, "abc"), (Number.SEVEN, "7"), (7.0, "7"), (0.5, "0.5"), (10**5000, None), (-(10**999), None)],
    ids=["enum of texts", "enum of numbers", "whole", "part", "too long", "one too long"],
)
def test_value_is_known_by_what_json_has_of_it(value, text):
    assert capability.waited_text(value) == text
