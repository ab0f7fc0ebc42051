"""Mistakes that batches can be made with, each planted into a worker and caught by what becomes of the events.

A batch of eight with one that is poisonous is worked to its end, by a handler that fails, by workers that die, and by
one whose lease another has. What is checked is what users were promised; without a mistake all of it holds.
"""

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import text

from hookonce.jobs import claimer
from hookonce.jobs.attempts import failing
from hookonce.jobs.attempts.ports import Attempt
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs import batches, claims, due_rows, failed_attempts, takeover
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.jobs.test_batches import rob
from tests.stories.mistakes import replace, reword
from tests.support.claiming import ClaimedForBatch, claim, claim_batch, claim_suspect, lapse

NAMES = [f"evt_{n}" for n in range(8)]
POISON = "evt_5"
INSERT = text("INSERT INTO effects (event) SELECT unnest(CAST(:events AS text[]))")
TURNS = 10
NOTHING = ClaimedForBatch()


def charges_all():
    def fail(connection, runs, endings, *took):
        return right(connection, runs, [dataclasses.replace(each, counted=True) for each in endings], *took)

    right = replace(failed_attempts, "fail", fail)


def tries_all_again_together():
    replace(batches, "halves", lambda events: [events])


def forgets_the_halves_at_a_kill():
    replace(batches, "words", lambda parts: dict.fromkeys((each for part in parts for each in part), "batch"))


def mixes_the_halves_with_all_others():
    word = "split_part(waits, ':', 1)"
    reword(due_rows, "WHERE waits = coalesce((SELECT waits", f"WHERE {word} = coalesce((SELECT {word}")


def ends_without_the_token():
    reword(functions, " AND q.token = %(token)s::uuid\n", "\n")


def ends_those_that_are_left():
    reword(functions, "LEFT JOIN gone", "JOIN gone")


def leaves_what_it_takes_due():
    reword(claims, "SET handler = t.handler, token = t.token", "SET handler = t.handler")


def buries_a_whole_batch():
    def outcome(_shared, attempt, error):
        dead = AttemptResult("dead", error=str(error))
        return failing._Outcome(verdicts={run.event.id: (dead, error) for run in attempt.runs})  # noqa: SLF001

    replace(failing, "_outcome", outcome)


def fails(inbox):
    """The handler raises as long as the poisonous one is there."""

    def handler(events, tx):
        tx.execute(INSERT, {"events": [event.event_id for event in events]})
        if POISON in {event.event_id for event in events}:
            raise ValueError

    inbox.on(handler, batch=BatchSize(8))
    inbox.deliver(*NAMES)
    for _ in range(30):
        inbox.work()
    return promises(inbox)


def dies(inbox):
    """Each worker dies that has the poisonous one; the others go on."""

    def handler(events, tx):
        tx.execute(INSERT, {"events": [event.event_id for event in events]})

    inbox.on(handler, batch=BatchSize(8))
    inbox.deliver(*NAMES)
    executor, taker = working(inbox), inbox.registry.named("handler")
    for _ in range(40):
        takeover.take_over(inbox.connection)
        met = claim(inbox.connection, inbox.registry)
        suspect = claim_suspect(inbox.connection, inbox.registry)
        runs = [*met.runs, suspect] if suspect else list(met.runs)
        while (found := claim_batch(inbox.connection, inbox.registry)) != NOTHING:
            if found.batch and POISON not in {run.event.event_id for run in found.batch}:
                executor.attempt(Attempt(found.batch, taker))
            runs += [found.alone] if found.alone else []
        for run in runs:
            if run.event.event_id != POISON:
                executor.attempt(Attempt([run], taker))
        lapse(inbox.connection)
    return promises(inbox)


def is_too_late(inbox):
    """Another takes one of the batch, or all of it, while the handler is at it; what was written must not stay."""

    def handler(events, tx):
        late = "" if taken else "too late: "
        tx.execute(INSERT, {"events": [late + event.event_id for event in events]})
        if not taken:
            taken.append(True)
            rob(inbox.connection, events[2].id)

    taken = []
    inbox.on(handler, batch=BatchSize(8))
    inbox.deliver(*NAMES)
    inbox.work()
    for _ in range(TURNS):  # one ends after a part of a second, done or not
        lapse(inbox.connection)
        inbox.work()
        if inbox.effects() == NAMES:
            break
    stays = any(effect.startswith("too late") for effect in inbox.effects())
    return {"stale end"} if stays else {"lost"} - ({"lost"} if inbox.effects() == NAMES else set())


def is_shared(inbox):
    """Two workers claim one after the other, before either has begun."""

    def handler(events, tx):
        tx.execute(INSERT, {"events": [event.event_id for event in events]})

    inbox.on(handler, batch=BatchSize(4))
    inbox.deliver(*NAMES)
    found = [claim_batch(inbox.connection, inbox.registry).batch for _ in range(3)]
    events = [run.event.id for batch in found if batch for run in batch]
    return {"taken twice"} if len(events) != len(set(events)) else set()


def working(inbox):
    inbox.drains.append(SingleSlot(inbox.settings, inbox.registry))
    inbox.drains[0].requeue_ignored()  # which announces the attempts that takeovers go by
    return inbox.drains[0].executor


def doubled(inbox):
    return {"doubled"} if len(inbox.effects()) != len(set(inbox.effects())) else set()


def promises(inbox):
    """What was promised and is not so."""
    broken = doubled(inbox)
    runs = {event: (status, attempts) for event, _, status, attempts in inbox.runs()}
    innocent = {name: run for name, run in runs.items() if name != POISON}
    if any(status == "dead" or attempts > 1 for status, attempts in innocent.values()):
        broken.add("charged")
    if set(innocent) - set(inbox.effects()) or len(innocent) < len(NAMES) - 1:
        broken.add("lost")
    if runs.get(POISON, ("", 0)) != ("dead", 3):
        broken.add("poison lives")
    return broken


STORIES = {each.__name__: each for each in (fails, dies, is_too_late, is_shared)}
PLANTED = [
    (charges_all, "fails", "charged"),
    (tries_all_again_together, "fails", "poison lives"),
    (buries_a_whole_batch, "fails", "charged"),
    (forgets_the_halves_at_a_kill, "dies", "poison lives"),
    (mixes_the_halves_with_all_others, "dies", "poison lives"),
    (ends_without_the_token, "is_too_late", "stale end"),
    (ends_those_that_are_left, "is_too_late", "stale end"),
    (leaves_what_it_takes_due, "is_shared", "taken twice"),
]


@pytest.fixture(autouse=True)
def soon_over(monkeypatch):
    """Have a worker end soon that a mistake keeps at it all the time."""
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(seconds=0.2))


@pytest.fixture
def planted(monkeypatch):
    """A function that plants a mistake for one test: what `replace` and `reword` change is put back."""

    def plant(mistake):
        for module in (functions, failed_attempts, batches, claims, due_rows, failing):
            for name, value in list(vars(module).items()):
                if not name.startswith("__"):
                    monkeypatch.setattr(module, name, value)
        mistake()

    return plant


@pytest.mark.parametrize("story", STORIES)
def test_worker_without_a_mistake_keeps_what_is_promised(inbox, story):
    assert STORIES[story](inbox) == set()


@pytest.mark.parametrize(("mistake", "story", "check"), PLANTED, ids=[each[0].__name__ for each in PLANTED])
def test_planted_mistake_is_caught(inbox, planted, mistake, story, check):
    planted(mistake)

    assert check in STORIES[story](inbox)
