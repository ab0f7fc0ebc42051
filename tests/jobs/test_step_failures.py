"""Failures of the database that leave the worker alive, and each mistake that steps can be made with."""

import hashlib
import os
from dataclasses import replace

import pytest

from hookonce import GiveUp
from hookonce.jobs.capabilities import steps as steps_of_handlers
from hookonce.jobs.capabilities.steps import Steps
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.idempotency import operation
from hookonce.receiver.idempotency import steps as store
from hookonce.receiver.idempotency.postgresql import Pool
from hookonce.receiver.idempotency.records import Claim, StoreUnavailable
from hookonce.receiver.idempotency.steps import StepStore
from hookonce.receiver.ledger import steps as ledger_steps
from hookonce.receiver.ledger.replay import events as event_replays
from tests.jobs.test_steps import Bank, Cut, die, errors, named, steps
from tests.support import rewording
from tests.support.idempotency.checks import LosesReplies

KEYRING = Keyring([os.urandom(32)])


def reword(module, *changes, within=""):
    return lambda patch: rewording.reword(patch, module, *changes, within=within)


def test_reply_that_is_lost_costs_nothing(inbox, monkeypatch):
    bank = Bank()
    monkeypatch.setattr(steps_of_handlers, "StepStore", lambda *of: LosesReplies(StepStore(*of)))
    inbox.on(named(lambda event, _: event.step("charge", bank.charge), "pay"))
    inbox.deliver("a", "b")

    inbox.work()

    assert errors(inbox) == []
    assert steps(inbox) == [("pay", "charge", "completed", 1, False)] * 2
    assert len(bank.charges) == 2


def test_step_is_not_done_and_nothing_charged_where_the_ledger_does_not_answer(inbox, monkeypatch):
    bank = Bank()
    nowhere = Pool("postgresql://127.0.0.1:1/nowhere", 1)
    monkeypatch.setattr(steps_of_handlers, "StepStore", lambda _, *of: StepStore(nowhere, *of))
    inbox.on(named(lambda event, _: event.step("charge", bank.charge), "pay"), attempts=1)
    inbox.deliver("a")

    inbox.work()
    inbox.work()  # gives back what was cut off

    assert bank.charges == []
    assert errors(inbox) == []
    assert inbox.rows("SELECT attempts, cut_offs, waits FROM hookonce.queue") == [(0, -1, None)]


def test_result_that_cannot_be_stored_leaves_the_step_cut_off(inbox, monkeypatch):
    bank = Bank()
    right = StepStore.complete
    failures = iter([True, True])

    def complete(self, *of):
        if next(failures, False):
            raise StoreUnavailable("the server is away")
        right(self, *of)

    monkeypatch.setattr(StepStore, "complete", complete)
    inbox.on(named(lambda event, _: event.step("charge", bank.charge, recover=bank.find), "pay"))
    inbox.deliver("a")

    inbox.work()

    assert (inbox.runs(), len(bank.charges)) == ([("a", "pay", "done", 2)], 1)


class Day:
    """Handlers with steps, and what became of these."""

    def __init__(self, inbox):
        self.inbox, self.other = inbox, replace(inbox, drains=[])
        self.bank, self.seen, self.asked, self.calls = Bank(), [], [], []

    def pay(self, event, _):
        def charge(key):
            charged = self.bank.charge(key)
            if event.attempt == 1:
                raise Cut
            return charged

        def mail(key):
            self.bank.charge(key)
            if event.attempt < 4:
                raise TimeoutError
            return ("sent",)

        gave = event.step("charge", charge, recover=self.bank.find)
        self.seen.append(event.step("mail", mail, recover=self.never_sent))
        if event.attempt < 5:
            raise LookupError
        return gave

    def never_sent(self, key):
        self.asked.append(key)
        return steps_of_handlers.NEVER_HAPPENED

    def ask(self, event, _):
        def call(key):
            self.bank.charge(key)
            raise Cut

        return event.step("charge", call, on_unknown="stop")

    def slow(self, event, _):
        def call(_):
            self.calls.append(event)
            if len(self.calls) > 1:
                return 2
            die(self.inbox)
            self.other.work()
            return 1

        return event.step("charge", call)

    def late(self, event, _):
        self.inbox.connection.execute(
            "UPDATE hookonce.queue SET token = gen_random_uuid() WHERE handler = 'late'"
        )
        event.step("charge", self.bank.charge)

    def refuse(self, event, _):
        def no(_):
            raise GiveUp("no")

        event.step("charge", no)

    def work(self):
        """Have each handler do its event."""
        patterns = {"pay": "a.*", "ask": "a.*", "slow": "slow", "late": "late", "refuse": "refuse"}
        for name, pattern in patterns.items():
            self.inbox.on(getattr(self, name), attempts=9, pattern=pattern)
        for name, kind in (("a", "a.a"), ("refuse", "refuse"), ("slow", "slow"), ("late", "late")):
            self.inbox.deliver(name, type=kind)
            self.inbox.work()
        for each in self.other.drains:
            each.close()

    def steps_of(self, event):
        ((number,),) = self.inbox.rows(f"SELECT id FROM hookonce.events WHERE event_id = '{event}'")  # noqa: S608
        return number, ledger_steps.of_event(self.inbox.connection, number, KEYRING)

    def replay(self, event, *forget):
        list(
            event_replays.replay(self.inbox.connection, [event], "a person", forget=list(forget), again=True)
        )
        self.inbox.work()


def story(inbox):
    """A day of steps: cut off, failed, stopped, repeated, replayed, and overtaken by another worker."""
    inbox.settings = replace(inbox.settings, keyring=KEYRING)
    day = Day(inbox)

    day.work()

    assert {row[1]: row[2:] for row in inbox.runs()} == {
        "ask": ("dead", 2),
        "late": ("running", 1),
        "pay": ("done", 5),
        "refuse": ("dead", 1),
        "slow": ("done", 1),
    }
    assert [row[:3] for row in steps(inbox)] == [
        ("ask", "charge", "failed_final"),
        ("pay", "charge", "completed"),
        ("pay", "mail", "completed"),
        ("slow", "charge", "completed"),
    ]
    assert (day.seen, len(day.asked)) == ([["sent"]] * 2, 2)
    assert [step.with_content().result for step in day.steps_of("slow")[1]] == [2]
    by_key = {key: day.bank.charges.count(key) for key in day.bank.charges}
    # ask charged, pay charged once, and three times by mail: under three keys
    assert sorted(by_key.values()) == [1, 1, 3]
    event, known = day.steps_of("a")
    assert {step.key for step in known} == set(by_key)
    stored = inbox.rows("SELECT result FROM hookonce.steps WHERE result IS NOT NULL")
    assert not any(b"sent" in result for (result,) in stored)

    inbox.connection.execute("DELETE FROM hookonce.queue WHERE handler = 'late'")
    day.replay(event)
    assert len(day.bank.charges) == 5
    day.replay(event, "mail")
    assert len(day.bank.charges) >= 6


def forgets_the_claim(patch):
    def claim(self, wanted):
        with self._asking(wanted.key) as connection:
            found = self._found(connection, wanted.key)
        if found is not None and found.result is not None:
            return found
        return Claim(wanted.key, wanted.fingerprint, wanted.owner, wanted.terms)

    def complete(self, claim, state, result):
        right(self, claim)
        done(self, claim, state, result)

    right, done = StepStore.claim, StepStore.complete
    patch.setattr(StepStore, "claim", claim)
    patch.setattr(StepStore, "complete", complete)


def asks_for_a_key_of_each_attempt(patch):
    patch.setattr(Steps, "key", lambda self, name: hashlib.sha256(f"{id(self)}{name}".encode()).hexdigest())


def leaves_the_handler_out_of_the_key(patch):
    patch.setattr(
        steps_of_handlers,
        "idempotency_key",
        lambda source, event, _: hashlib.sha256(f"{source}\n{event}".encode()).hexdigest(),
    )


def leaves_the_step_out_of_the_key(patch):
    patch.setattr(Steps, "key", lambda self, _: self._idempotency_key)


def gives_the_first_attempt_what_was_not_stored(patch):
    right = Steps._kept  # noqa: SLF001  what is changed

    def kept(self, step, claim, gave):
        yield from right(self, step, claim, gave)
        return gave

    patch.setattr(Steps, "_kept", kept)


def takes_a_failure_for_nothing_done(patch):
    patch.setattr(operation, "fail_for_now", lambda of, claim: of.release(claim))


def takes_a_refusal_for_a_failure(patch):
    patch.setattr(operation, "abandon", operation.fail_for_now)


def asks_no_person(patch):
    def recovered(self, step, claim):
        return (yield from right(self, replace(step, on_unknown="retry"), claim))

    right = Steps._recovered  # noqa: SLF001  what is changed
    patch.setattr(Steps, "_recovered", recovered)


def never_recovers(patch):
    patch.setattr(Steps, "_recovered", lambda *_: iter(()))


def seals_nothing(patch):
    patch.setattr(
        steps_of_handlers, "StepStore", lambda connect, attempt, _: StepStore(connect, attempt, OFF)
    )


def forgets_whatever_is_replayed(patch):
    right = ledger_steps.forget_of_runs
    patch.setattr(
        event_replays.steps, "forget_of_runs", lambda c, runs, _: right(c, runs, ["charge", "mail"])
    )


def forgets_nothing(patch):
    patch.setattr(event_replays.steps, "forget_of_runs", lambda *_: [])


DOUBT = "ELSE true END\nWHERE"
MISTAKES = {
    "forgets the claim": forgets_the_claim,
    "stores a result over a newer claim": reword(
        store, ("AND owner = %(owner)s AND state = 'in_progress'", ""), within="SET state"
    ),
    "claims a run of others": reword(store, ("AND token = %(token)s ", "")),
    "forgets the doubt": reword(store, (DOUBT, "ELSE false END\nWHERE")),
    "does again what was done": reword(
        store,
        ("IN ('in_progress', 'failed_retryable')", "IN ('in_progress', 'completed', 'failed_retryable')"),
    ),
    "does again what was stopped": reword(
        store, ("IN ('in_progress', 'failed_retryable')", "IN ('in_progress', 'failed_final')")
    ),
    "never takes over": reword(store, ("IN ('in_progress', 'failed_retryable')", "= 'failed_retryable'")),
    "asks for a key of each attempt": asks_for_a_key_of_each_attempt,
    "leaves the handler out of the key": leaves_the_handler_out_of_the_key,
    "leaves the step out of the key": leaves_the_step_out_of_the_key,
    "gives the first attempt what was not stored": gives_the_first_attempt_what_was_not_stored,
    "takes a failure for nothing done": takes_a_failure_for_nothing_done,
    "takes a refusal for a failure": takes_a_refusal_for_a_failure,
    "asks no person": asks_no_person,
    "seals nothing": seals_nothing,
    "forgets whatever is replayed": forgets_whatever_is_replayed,
    "forgets nothing": forgets_nothing,
}


def test_story_is_true(inbox):
    story(inbox)


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistake_is_caught_by_the_story(inbox, name):
    with pytest.MonkeyPatch.context() as patch:
        MISTAKES[name](patch)

        with pytest.raises((AssertionError, KeyError)):
            story(inbox)
