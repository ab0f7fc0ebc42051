"""What batches promise besides what `test_batch_mistakes` has, each promise with a mistake that breaks it."""

from datetime import timedelta
from itertools import takewhile

import pytest

from hookonce.jobs.attempts import failing
from hookonce.jobs.handlers import GiveUp, RetryLater
from hookonce.jobs.plan import Plan
from hookonce.jobs.slots.capacity import OneAtATime
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs import batch_claims, batch_parts, breakers, claims, ends, leases, takeover
from hookonce.receiver.ledger.runs.decisions import Decision
from tests.jobs.test_batches import Batches, claimed, names, on_batches, work_to_the_end, write
from tests.stories.mistakes import replace, reword
from tests.support.claiming import claim_batch, lapse

HOUR = timedelta(hours=1)


def leaves_no_claim_behind(inbox):
    """Its claim is forgotten when its worker claims again."""
    on_batches(inbox, Batches().handler)
    inbox.deliver(*names(4))
    work_to_the_end(inbox)
    assert {run[2] for run in inbox.runs()} == {"done"}
    assert inbox.rows("SELECT count(*) FROM hookonce.claims") == [(0,)]


def is_not_done_in_another_transaction(inbox):
    """What a handler rolled back itself is lost; that it began another transaction must not make its events done."""

    def handler(events, tx):
        write(events, tx)
        libpq = tx.connection.driver_connection.pgconn
        libpq.exec_(b"ROLLBACK")
        libpq.exec_(b"BEGIN")

    on_batches(inbox, handler, attempts=1)
    inbox.deliver(*names(4))
    work_to_the_end(inbox)
    assert {run[2] for run in inbox.runs()} == {"dead"}


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
    assert len(found.batch.runs) == 5


def hides_nothing_that_is_behind_it(inbox):
    """What is left to a batch and waits for more does not hide a slow one behind it; the claim tells of both."""

    def slow(_event, _tx):
        pass

    on_batches(inbox, Batches().handler, pattern="track", wait=timedelta(seconds=30))
    inbox.on(slow, pattern="slow")
    inbox.registry.note("slow", timedelta(seconds=5))
    ids = inbox.deliver(*names(3), type="track")
    inbox.deliver("slow", type="slow")
    room = OneAtATime(inbox.registry, quick_first=True)
    claim = claims.claim(inbox.connection, Plan(inbox.registry, room))
    assert [run.event.event_id for run in claim.runs] == ["slow"]
    assert {name: sorted(found) for name, found in claim.batchable.items()} == {"handler": ids}


def forgets_what_nobody_comes_for(inbox):
    """A day later a part whose handler is gone is no row any more, and its events are taken up as any."""
    taken = Batches()
    on_batches(inbox, taken.handler)
    inbox.deliver(*names(4))
    claimed(inbox)
    lapse(inbox.connection)
    takeover.take_over(inbox.connection)
    batch_parts.forget(inbox.connection)
    assert inbox.rows("SELECT count(*) FROM hookonce.batches") == [(2,)]
    inbox.connection.execute("UPDATE hookonce.batches SET made_at = now() - interval '25 h'")
    batch_parts.forget(inbox.connection)
    assert inbox.rows("SELECT count(*) FROM hookonce.batches") == [(0,)]
    inbox.work()
    assert {run[2] for run in inbox.runs()} == {"done"}


def forgets_no_claim():
    replace(leases, "forget", lambda *_: None)


def believes_in_any_transaction():
    reword(functions, "%(xact_id)s::text::xid8 = pg_current_xact_id_if_assigned()", "true")


def keeps_all_bodies():
    reword(functions, "AND b.event", "AND false AND b.event")


def leaves_the_breaker_as_it_is():
    def end(connection, ended, **named):
        right(connection, ended._replace(also=None), **named)

    right = replace(ends, "end", end)


def believes_whatever_is_named():
    def named(error, batch):
        about = error.event if isinstance(error.event, list) else [error.event]
        return sorted({event.id for event in about} & set(batch.events))

    replace(failing, "_named", named)


def waits_for_whoever_is_named():
    def outcome(shared, attempt, batch, error):
        if isinstance(error, RetryLater):
            error.event = None
        return right(shared, attempt, batch, error)

    right = replace(failing, "_outcome", outcome)


def takes_all_that_is_due():
    replace(batch_claims, "_bounded", lambda met: met.runs)


def looks_at_nothing_behind_a_batch():
    def up_to_the_first_other(self, rows, paused):
        return list(takewhile(lambda each: each.decision is Decision.BATCH, right(self, rows, paused)))

    right = replace(Plan, "__call__", up_to_the_first_other)


def forgets_the_batch_for_what_is_behind():
    def by_handler(planned):
        return {} if any(each.decision is Decision.LEASE for each in planned) else right(planned)

    right = replace(claims, "_by_handler", by_handler)


def never_forgets():
    reword(batch_parts, "WHERE made_at", "WHERE false AND made_at")


PLANTED = [
    (forgets_no_claim, leaves_no_claim_behind),
    (believes_in_any_transaction, is_not_done_in_another_transaction),
    (keeps_all_bodies, keeps_no_body_of_a_source_that_wants_none),
    (leaves_the_breaker_as_it_is, closes_its_breaker_when_it_succeeds),
    (believes_whatever_is_named, halves_what_names_a_stranger),
    (waits_for_whoever_is_named, halves_what_is_to_be_tried_later_and_names_none_of_it),
    (takes_all_that_is_due, takes_no_more_than_the_memory_is_for),
    (looks_at_nothing_behind_a_batch, hides_nothing_that_is_behind_it),
    (forgets_the_batch_for_what_is_behind, hides_nothing_that_is_behind_it),
    (never_forgets, forgets_what_nobody_comes_for),
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(batch_claims, "MAX_BYTES", 500_000)


@pytest.fixture
def planted(monkeypatch):
    """A function that plants a mistake for one test: what `replace` and `reword` change is put back."""

    def plant(mistake):
        for owner in (
            batch_parts,
            batch_claims,
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
