"""Promises of batches beside those of `test_batches`, each with a mistake that breaks it."""

from datetime import timedelta

import pytest

from hookonce.jobs.attempts import failing
from hookonce.jobs.handlers import GiveUp, RetryLater
from hookonce.jobs.plan import Plan
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs import breakers, claims, due_rows, ends, leases, parking
from tests.jobs.test_batches import Batches, names, on_batches, work_to_the_end
from tests.stories.mistakes import replace, reword
from tests.support.claiming import claim_batch
from tests.support.inbox import effect

HOUR = timedelta(hours=1)


def leaves_no_claim_behind(inbox):
    """Its claim is forgotten when its worker claims again."""
    on_batches(inbox, Batches().handler)
    inbox.deliver(*names(4))
    work_to_the_end(inbox)
    assert {run[2] for run in inbox.runs()} == {"done"}
    assert inbox.rows("SELECT count(*) FROM hookonce.claims") == [(0,)]


def keeps_no_body_of_a_source_that_wants_none(inbox):
    """Bodies go with the end of the batch; those of what is dead, and of other sources, stay."""

    def handler(events, _tx):
        if bad := [event for event in events if event.event_id == "evt_001"]:
            raise GiveUp("no", event=bad)

    on_batches(inbox, handler)
    inbox.deliver(*names(4), keep_body=False)
    inbox.deliver("kept")
    work_to_the_end(inbox)
    left = inbox.rows(
        "SELECT event_id FROM hookonce.event_states e JOIN hookonce.bodies b ON b.event = e.id ORDER BY 1"
    )
    assert left == [("evt_001",), ("kept",)]


def closes_its_breaker_when_it_succeeds(inbox):
    """Failures in a row are over with a batch that goes through."""
    taken = Batches("evt_000")
    on_batches(inbox, taken.handler, breaker=5, attempts=10, backoff=(HOUR, HOUR))
    inbox.deliver("evt_000")
    inbox.work()
    assert [breaker.failures for breaker in breakers.breakers(inbox.connection)] == [1]
    inbox.deliver("new_1", "new_2")
    inbox.work()
    assert taken.sizes == [1, 2]
    assert breakers.breakers(inbox.connection) == []


def take_four_after_another(inbox, handler):
    """Have a handler take an event by itself, then four together; all of them are done in the end."""
    on_batches(inbox, handler)
    inbox.deliver("other")
    inbox.work()
    inbox.deliver(*names(4))
    work_to_the_end(inbox)
    assert {run[2] for run in inbox.runs()} == {"done"}


def halves_what_names_a_stranger(inbox):
    """An error about events of which some are not in the batch is no verdict on any; all of them are tried apart."""
    kept, sizes = [], []

    def handler(events, _tx):
        sizes.append(len(events))
        kept.extend(events[-1:])
        if len(events) > 1:
            raise GiveUp("no", event=[events[0], kept[0]])

    take_four_after_another(inbox, handler)
    assert sorted(sizes) == [1, 1, 1, 1, 1, 2, 2, 4]


def halves_what_is_to_be_tried_later_and_names_none_of_it(inbox):
    """`RetryLater` that is about others has nobody wait."""
    kept = []

    def handler(events, _tx):
        kept.extend(events[-1:])
        if len(events) > 1:
            raise RetryLater(3600, event=kept[0])

    take_four_after_another(inbox, handler)


def takes_no_more_than_the_memory_is_for(inbox):
    """As many as their bodies allow."""
    on_batches(inbox, Batches().handler, most=100)
    inbox.deliver(*names(12), body=b"x" * 100_000)
    found = claim_batch(inbox.connection, inbox.registry)
    assert len(found.batch) == 5


def hides_nothing_that_is_behind_it(inbox):
    """What waits for its batch does not hide what is behind it, however much it is: it leaves the head of the queue."""
    on_batches(inbox, Batches().handler, pattern="track", wait=timedelta(seconds=30))
    inbox.on(effect, pattern="other")
    inbox.deliver(*names(200), type="track")
    inbox.deliver("other", type="other")
    claims.claim(inbox.connection, Plan(inbox.registry))
    claim = claims.claim(inbox.connection, Plan(inbox.registry))
    assert [run.event.event_id for run in claim.runs] == ["other"]


def comes_back_where_its_handler_takes_single_events_now(inbox):
    """A handler that takes batches no more gets what waits for them, one by one."""
    on_batches(inbox, Batches().handler, wait=timedelta(seconds=30))
    inbox.deliver(*names(4))
    inbox.work()
    assert inbox.rows("SELECT DISTINCT waits FROM hookonce.queue") == [("batch",)]
    parking.unbatch(inbox.connection, ["handler"])
    assert inbox.rows("SELECT DISTINCT waits FROM hookonce.queue") == [(None,)]


def is_searched_in_its_smallest_part_first(inbox):
    """What has failed is found before what is larger is tried again."""
    taken = Batches("evt_000", "evt_006")
    on_batches(inbox, taken.handler, attempts=1)
    inbox.deliver(*names(8))
    work_to_the_end(inbox)
    assert taken.sizes == [8, 4, 2, 1, 1, 2, 4, 2, 2, 1, 1]


def waits_with_its_word_while_its_source_is_paused(inbox):
    """What waits for a batch when its source is paused is parked for that, and not taken."""
    taken = Batches()
    on_batches(inbox, taken.handler, wait=timedelta(seconds=30))
    inbox.deliver(*names(4))
    inbox.work()
    pauses.pause(inbox.connection, "source", "stripe", "ann")
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '31 s'")
    work_to_the_end(inbox)
    assert taken.sizes == []
    assert inbox.rows("SELECT DISTINCT waits FROM hookonce.queue") == [("source:stripe",)]
    pauses.resume(inbox.connection, "source", "stripe", "ann")
    assert inbox.rows("SELECT DISTINCT waits FROM hookonce.queue") == [(None,)]


def forgets_no_claim():
    replace(leases, "forget", lambda *_: None)


def keeps_all_bodies():
    reword(functions, "AND b.event", "AND false AND b.event")


def leaves_the_breaker_as_it_is():
    def end(connection, ended, **named):
        right(connection, ended._replace(also=None), **named)

    right = replace(ends, "end", end)


def believes_whatever_is_named():
    def named(error, events):
        about = error.event if isinstance(error.event, list) else [error.event]
        return sorted({event.id for event in about} & set(events))

    replace(failing, "_named", named)


def waits_for_whoever_is_named():
    def outcome(shared, attempt, error):
        if isinstance(error, RetryLater):
            error.event = None
        return right(shared, attempt, error)

    right = replace(failing, "_outcome", outcome)


def takes_all_that_is_due():
    reword(due_rows, "WHERE number = 1 OR bytes <= %(most_bytes)s", "WHERE true")


def leaves_them_at_the_head():
    replace(claims, "park_head", lambda *_: 0)


def leaves_them_with_the_word():
    replace(parking, "unbatch", lambda *_: None)


def tries_the_largest_part_first():
    reword(due_rows, "ORDER BY waits LIMIT 1", "ORDER BY waits DESC LIMIT 1")


def parks_nothing_of_batches():
    replace(parking, "park_batch", lambda *_: 0)


PLANTED = [
    (forgets_no_claim, leaves_no_claim_behind),
    (keeps_all_bodies, keeps_no_body_of_a_source_that_wants_none),
    (leaves_the_breaker_as_it_is, closes_its_breaker_when_it_succeeds),
    (believes_whatever_is_named, halves_what_names_a_stranger),
    (waits_for_whoever_is_named, halves_what_is_to_be_tried_later_and_names_none_of_it),
    (takes_all_that_is_due, takes_no_more_than_the_memory_is_for),
    (leaves_them_at_the_head, hides_nothing_that_is_behind_it),
    (leaves_them_with_the_word, comes_back_where_its_handler_takes_single_events_now),
    (tries_the_largest_part_first, is_searched_in_its_smallest_part_first),
    (parks_nothing_of_batches, waits_with_its_word_while_its_source_is_paused),
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(due_rows, "MAX_BYTES", 500_000)


@pytest.fixture
def planted(monkeypatch):
    """A function that plants a mistake for one test: what `replace` and `reword` change is put back."""

    def plant(mistake):
        for owner in (
            due_rows,
            parking,
            claims,
            ends,
            functions,
            leases,
            Plan,
            failing,
        ):
            for name, value in list(vars(owner).items()):
                if not name.startswith("__") or name == "__call__":
                    monkeypatch.setattr(owner, name, value)
        mistake()

    return plant


@pytest.mark.parametrize(
    "promise", dict.fromkeys(promise for _, promise in PLANTED), ids=lambda each: each.__name__
)
def test_batch(inbox, promise):
    promise(inbox)


@pytest.mark.parametrize(("mistake", "promise"), PLANTED, ids=[each[0].__name__ for each in PLANTED])
def test_planted_mistake_breaks_the_promise(inbox, planted, mistake, promise):
    planted(mistake)

    with pytest.raises(AssertionError):
        promise(inbox)
