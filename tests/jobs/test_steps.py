import asyncio
import json
import os
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from sqlalchemy import text

from hookonce import NEVER_HAPPENED, UNKNOWN, GiveUp, ReceivedEvent, Refusal, RetryLater, StepError
from hookonce.jobs.handlers import HandlerError, Registry
from hookonce.jobs.registration import on
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.steps import idempotency_key, step_key
from tests.support.inbox import effect
from tests.support.waiting import at_once

KEYRING = Keyring([os.urandom(32)])


class Bank:
    """The other side: it takes charges, and forgets nothing."""

    def __init__(self):
        self.charges = []

    def charge(self, key):
        self.charges.append(key)
        return {"id": f"ch_{len(self.charges)}"}

    def find(self, key):
        return {"id": f"ch_{self.charges.index(key) + 1}"} if key in self.charges else NEVER_HAPPENED


@pytest.fixture
def bank():
    return Bank()


def steps(inbox):
    return inbox.rows("SELECT handler, name, state, attempt, is_uncertain FROM hookonce.steps ORDER BY 1, 2")


def errors(inbox):
    return [row[0] for row in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id")]


def results(inbox):
    return [row[0] for row in inbox.rows("SELECT result FROM hookonce.run_states ORDER BY event")]


def die(inbox):
    """A worker has died in the midst of its attempt: the run and its step stay as they are, and time passes."""
    inbox.connection.execute(
        "UPDATE hookonce.queue SET due_at = now(); UPDATE hookonce.claims SET lease_until = now()"
    )


def test_step_is_done_once_and_later_attempts_get_its_result(inbox, bank):
    def pay(event, tx):
        charge = event.step("charge", bank.charge)
        effect(event, tx)
        if event.attempt < 3:
            raise LookupError("not yet")
        return charge

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "pay", "done", 3)]
    assert (results(inbox), inbox.effects()) == ([{"id": "ch_1"}], ["a"])
    assert steps(inbox) == [("pay", "charge", "completed", 1, False)]
    assert bank.charges == [step_key(idempotency_key("stripe", "a", "pay"), "charge")]


def test_step_in_progress_is_committed_before_its_function_is_called(inbox):
    def pay(event, _):
        return event.step("charge", lambda _: [list(row) for row in steps(inbox)])

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    assert results(inbox) == [[["pay", "charge", "in_progress", 1, False]]]


def test_steps_of_other_handlers_events_and_names_have_keys_of_their_own(inbox, bank):
    def pay(event, _):
        event.step("charge", bank.charge)
        event.step("mail", bank.charge)

    def refund(event, _):
        event.step("charge", bank.charge)

    inbox.on(pay)
    inbox.on(refund)
    inbox.deliver("a", "b")

    inbox.work()

    assert len(bank.charges) == len(set(bank.charges)) == 6


def test_first_attempt_gets_the_result_as_later_ones_do(inbox):
    seen = []

    def pay(event, _):
        seen.append(event.step("charge", lambda _: {1: (2, 3)}))
        if event.attempt == 1:
            raise LookupError

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    assert seen == [{"1": [2, 3]}] * 2


class Cut(BaseException):
    """Ends an attempt where a worker would have died."""


@pytest.fixture
def cut_off(inbox, bank):
    """A function: a handler's first attempt is cut off in its step, after the effect or before."""

    def cut_off(*, is_heard, **options):
        def pay(event, _):
            def charge(key):
                if event.attempt > 1 or is_heard:
                    bank.charge(key)
                if event.attempt == 1:
                    raise Cut
                return {"id": f"ch_{len(bank.charges)}"}

            return event.step("charge", charge, **options)

        inbox.on(pay)
        inbox.deliver("a")
        inbox.work()

    return cut_off


def test_step_that_was_cut_off_is_done_again_under_the_same_key(inbox, bank, cut_off):
    cut_off(is_heard=True)

    assert len(bank.charges) == 2
    assert len(set(bank.charges)) == 1
    assert steps(inbox) == [("pay", "charge", "completed", 2, True)]


def test_step_that_was_cut_off_is_recovered_by_its_key(inbox, bank, cut_off):
    cut_off(is_heard=True, recover=bank.find)

    assert len(bank.charges) == 1
    assert results(inbox) == [{"id": "ch_1"}]


def test_step_that_never_happened_is_done(inbox, bank, cut_off):
    cut_off(is_heard=False, recover=bank.find, on_unknown="stop")

    assert len(bank.charges) == 1
    assert results(inbox) == [{"id": "ch_1"}]


@pytest.mark.parametrize("recover", [None, lambda _: UNKNOWN])
def test_step_nobody_knows_of_stops_for_a_person(inbox, bank, cut_off, recover):
    cut_off(is_heard=True, recover=recover, on_unknown="stop")

    assert inbox.runs() == [("a", "pay", "dead", 2)]
    assert steps(inbox) == [("pay", "charge", "failed_final", 2, True)]
    assert (
        f"hookonce steps done` with its result, or `hookonce steps forget`, and replay (key {bank.charges[0]})"
        in (errors(inbox)[-1])
    )
    assert len(bank.charges) == 1


def test_step_that_never_ran_is_not_recovered(inbox, bank):
    asked = []
    inbox.on(named(lambda event, _: event.step("charge", bank.charge, recover=asked.append), "pay"))
    inbox.deliver("a")

    inbox.work()

    assert (asked, len(bank.charges)) == ([], 1)


def named(function, name):
    function.__name__ = name
    return function


@pytest.mark.parametrize("error", [RetryLater(60), GiveUp("no"), Refusal(402, "no")])
def test_step_whose_function_says_that_nothing_happened_is_as_if_it_never_ran(inbox, error):
    def refuse(_):
        raise error

    inbox.on(named(lambda event, _: event.step("charge", refuse), "pay"))
    inbox.deliver("a")

    inbox.work()

    assert steps(inbox) == []


def test_step_that_failed_is_asked_after_before_it_is_done_again(inbox, bank):
    def charge(key):
        bank.charge(key)
        raise TimeoutError("no answer")

    inbox.on(named(lambda event, _: event.step("charge", charge, recover=bank.find), "pay"))
    inbox.deliver("a")

    inbox.work()

    assert len(bank.charges) == 1
    assert inbox.runs() == [("a", "pay", "done", 2)]
    assert results(inbox) == [{"id": "ch_1"}]


@pytest.mark.parametrize(
    ("gave", "said"), [(object(), "object, which is not JSON"), ("x" * 2**20, "1048578 bytes")]
)
def test_step_whose_result_cannot_be_kept_is_never_done_again(inbox, bank, gave, said):
    def charge(key):
        bank.charge(key)
        return gave

    inbox.on(named(lambda event, _: event.step("charge", charge), "pay"))
    inbox.deliver("a")

    inbox.work()

    assert len(bank.charges) == 1
    assert inbox.runs() == [("a", "pay", "dead", 1)]
    assert f"it was done; it gave {said}" in errors(inbox)[0]


def test_step_of_an_attempt_that_lost_its_run_is_neither_claimed_nor_stored(inbox, bank):
    def lose(event, _):
        inbox.connection.execute("UPDATE hookonce.queue SET token = gen_random_uuid()")
        try:
            event.step("charge", bank.charge)
        finally:
            seen.append(steps(inbox))

    seen = []
    inbox.on(lose)
    inbox.deliver("a")

    inbox.work()

    assert (seen, bank.charges) == ([[]], [])


def test_result_is_not_stored_over_a_newer_claim(inbox, bank):
    def pay(event, _):
        def charge(key):
            worker = len(bank.charges)
            bank.charge(key)
            if not worker:  # it takes too long: another worker has the run, and the step
                die(inbox)
                other.work()
            return f"of worker {worker + 1}"

        return event.step("charge", charge)

    inbox.on(pay)
    inbox.deliver("a")
    other = replace(inbox, drains=[])

    inbox.work()

    for each in other.drains:
        each.close()
    assert inbox.runs() == [("a", "pay", "done", 1)]
    assert results(inbox) == ["of worker 2"]
    ((result,),) = inbox.rows("SELECT result FROM hookonce.steps")
    assert json.loads(result) == "of worker 2"
    assert len(set(bank.charges)) == 1


def test_step_that_waits_for_the_handler_s_own_lock_says_so_and_blocks_nobody(inbox, bank):
    def pay(event, tx):
        tx.execute(text("SELECT FROM hookonce.queue FOR UPDATE"))
        event.step("charge", bank.charge)

    inbox.on(pay, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert bank.charges == []
    assert inbox.runs() == [("a", "pay", "dead", 1)]
    assert "maybe this handler's own transaction; lock nothing of the ledger's there" in errors(inbox)[0]


WRONG = {
    "no text": (lambda event: event.step(5, str), "5 can't be the name of a step"),
    "a blank": (lambda event: event.step("a b", str), "visible characters of ASCII, no blanks"),
    "too long": (lambda event: event.step("a" * 101, str), "1 to 100 visible characters"),
    "no key": (
        lambda event: event.step("a", lambda: 1),
        "its function must take one argument, the step's key",
    ),
    "a default": (
        lambda event: event.step("a", lambda order=1: order),
        "its function must take one argument",
    ),
    "recover": (lambda event: event.step("a", str, recover=lambda: 1), "its recover must take one argument"),
    "no function": (lambda event: event.step("a", "b"), "its function must take one argument"),
    "on_unknown": (lambda event: event.step("a", str, on_unknown="ask"), "expected 'retry' or 'stop'"),
    "coroutine": (
        lambda event: event.step("a", asyncio.sleep),
        "its function is an async def, and the handler is none",
    ),
    "twice": (
        lambda event: [event.step("a", str), event.step("a", str)],
        "the step 'a' was done in this attempt already; give each step of a handler a name of its own",
    ),
    "within itself": (
        lambda event: event.step("a", lambda _: event.step("a", str)),
        "the step 'a' is under way in this attempt already",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_step_that_is_asked_for_wrongly_is_refused(inbox, wrong):
    call, said = WRONG[wrong]
    inbox.on(named(lambda event, _: call(event), "pay"), attempts=1)
    inbox.deliver("a")

    inbox.work()

    (error,) = errors(inbox)
    assert error.startswith("StepError: ")
    assert said in error


def test_handler_with_steps_needs_a_name_where_that_can_be_seen():
    def pay(received, _):
        return received.step("charge", str)

    with pytest.raises(HandlerError, match=r"uses event\.step and has no name=; name it"):
        on("stripe")(pay)
    with pytest.raises(HandlerError, match=r"uses event\.step"):
        on("stripe")(waits)


async def waits(event, _):
    return await event.step("charge", str)


def test_handler_whose_own_code_says_no_event_step_needs_no_name(monkeypatch):
    monkeypatch.setattr("hookonce.jobs.handlers.registry", Registry())

    def train(_, tx):
        return tx.step("charge", str)

    on("stripe")(train)


def test_unnamed_handler_whose_steps_could_not_be_seen_is_told_at_its_first(inbox, bank):
    inbox.on(named(lambda event, _: charge(event), "pay"), is_named=False, attempts=1)
    inbox.deliver("a")

    def charge(event):
        event.step("charge", bank.charge)

    inbox.work()

    assert "handler 'pay' uses event.step and has no name=" in errors(inbox)[0]
    assert (bank.charges, steps(inbox)) == ([], [])


@pytest.mark.parametrize("is_awaitable", [True, False])
def test_async_handler_awaits_its_steps(inbox, bank, is_awaitable):
    async def charge(key):
        await asyncio.sleep(0)
        return bank.charge(key)

    async def pay(event, _):
        gave = await event.step("charge", charge if is_awaitable else bank.charge)
        if event.attempt == 1:
            raise LookupError
        return gave

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    assert (results(inbox), len(bank.charges)) == ([{"id": "ch_1"}], 1)


def test_steps_of_an_async_handler_may_be_under_way_together(inbox, bank):
    meet = []

    async def charge(key):
        await meet[0].wait()
        return bank.charge(key)

    async def pay(event, _):
        meet.append(asyncio.Barrier(3))
        return len(await asyncio.gather(*(event.step(f"charge-{n}", charge) for n in range(3))))

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    assert results(inbox) == [3]
    assert len(set(bank.charges)) == 3


def test_async_step_that_is_not_awaited_fails_the_attempt(inbox, bank):
    async def pay(event, _):
        forgotten.append(event.step("charge", bank.charge))

    forgotten = []
    inbox.on(pay, attempts=1)
    inbox.deliver("a")

    inbox.work()

    forgotten.pop().close()
    assert "the handler returned before these steps had ended: 'charge'; await event.step" in errors(inbox)[0]


def test_async_step_that_takes_too_long_is_cut_off_and_recovered(inbox, bank):
    async def charge(key):
        bank.charge(key)
        await asyncio.sleep(60)

    async def pay(event, _):
        return await event.step("charge", charge, recover=bank.find)

    inbox.on(pay, attempts=9, timeout=timedelta(seconds=0.3))
    inbox.deliver("a")

    inbox.work()

    assert (results(inbox), len(bank.charges)) == ([{"id": "ch_1"}], 1)


def test_sync_step_that_takes_too_long_is_cut_off_and_recovered(inbox, bank):
    def charge(key):
        bank.charge(key)
        time.sleep(60)

    inbox.on(
        named(lambda event, _: event.step("charge", charge, recover=bank.find), "pay"),
        attempts=9,
        timeout=timedelta(seconds=0.3),
    )
    inbox.deliver("a")

    inbox.work()

    assert (results(inbox), len(bank.charges)) == ([{"id": "ch_1"}], 1)


def test_result_is_sealed_where_bodies_are(inbox, bank):
    inbox.settings = replace(inbox.settings, keyring=KEYRING)

    def pay(event, _):
        gave = event.step("charge", bank.charge)
        if event.attempt == 1:
            raise LookupError
        return gave["id"] == "ch_1"

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    ((stored, key),) = inbox.rows("SELECT result, key_id FROM hookonce.steps")
    assert (b"ch_1" in stored, key) == (False, KEYRING.first)
    assert inbox.runs() == [("a", "pay", "done", 2)]


def test_step_whose_result_could_not_be_sealed_is_not_done(inbox, bank):
    inbox.settings = replace(inbox.settings, keyring=Keyring([None, os.urandom(32)]))
    inbox.on(named(lambda event, _: event.step("charge", bank.charge), "pay"))
    inbox.deliver("a")

    inbox.work()

    assert (bank.charges, steps(inbox)) == ([], [])
    assert inbox.runs() == [("a", "pay", "waiting", 0)]


def test_steps_need_no_thread_of_their_own(inbox, bank):
    def pay(event, _):
        at_once(*(partial(event.step, f"charge-{n}", bank.charge) for n in range(6)))

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    assert len(set(bank.charges)) == 6
    assert {row[2] for row in steps(inbox)} == {"completed"}


def test_event_without_a_run_has_no_steps():
    event = object.__new__(ReceivedEvent)
    event._make, event.capabilities = None, {}

    with pytest.raises(StepError, match="this event can have no steps"):
        event.step("charge", str)


def test_step_survives_a_worker_that_is_cut_from_the_database(inbox, bank):
    def pay(event, _):
        event.step("one", bank.charge)
        with psycopg.connect(libpq_url(inbox.settings.database_url), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'hookonce receiver' AND pid <> %s",
                [inbox.connection.info.backend_pid],
            )
        event.step("two", bank.charge)

    inbox.on(pay)
    inbox.deliver("a")

    inbox.work()

    assert (inbox.runs(), len(bank.charges)) == ([("a", "pay", "done", 1)], 2)
