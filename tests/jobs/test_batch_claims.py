"""What a batch is claimed of: past what waits for other handlers, within the memory that it may take."""

import tracemalloc
from datetime import timedelta

import pytest

from hookonce.jobs.plan import Plan
from hookonce.receiver.ledger.runs import claims, due_rows, ends
from hookonce.receiver.ledger.runs.due_rows import Waiting
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus, Waits
from tests.jobs.test_batches import Batches, names, on_batches, work_to_the_end
from tests.support.claiming import NO_TIME, batch, claim_batch
from tests.support.inbox import effect


def take_all(inbox):
    """Claim a batch and end it as done; return how many it had."""
    found = claim_batch(inbox.connection, inbox.registry)
    runs = found.batch or ([found.alone] if found.alone else [])
    if runs:
        inbox.connection.execute("BEGIN")
        ends.end(inbox.connection, ends.Ended(runs, [AttemptResult(RunStatus.DONE)] * len(runs), NO_TIME))
    return len(runs)


@pytest.mark.parametrize("most", [10, 500])
def test_batch_finds_what_is_new_behind_all_that_waits_for_another_handler(inbox, most):
    on_batches(inbox, Batches().handler, most=most)
    inbox.on(effect)
    inbox.deliver(*names(600))
    while take_all(inbox):
        pass
    inbox.deliver(*(f"new_{n}" for n in range(10)))

    assert [take_all(inbox), take_all(inbox)] == [10, 0]
    assert inbox.rows("SELECT count(*) FROM hookonce.queue WHERE waits IS NULL") == [(610,)]


def test_all_that_became_due_at_once_is_taken_in_batches(inbox):
    on_batches(inbox, Batches().handler, most=10)
    inbox.on(effect)
    inbox.deliver(*names(300))
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 min'")

    assert [take_all(inbox) for _ in range(31)] == [10] * 30 + [0]


def test_batch_reads_no_more_bodies_than_it_takes(inbox, monkeypatch):
    monkeypatch.setattr(due_rows, "MAX_BYTES", 1_000_000)
    taken = Batches()
    on_batches(inbox, taken.handler, most=100)
    inbox.deliver(*names(60), body=b"x" * 100_000)
    batch(inbox.connection, inbox.registry)
    tracemalloc.start()

    claim = claim_batch(inbox.connection, inbox.registry)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(claim.batch), claim.is_full) == (10, True)
    assert all(run.event.body for run in claim.batch)
    assert peak < 3_000_000


def test_batch_that_waits_for_more_reads_no_body(inbox):
    on_batches(inbox, Batches().handler, most=100, wait=timedelta(seconds=30))
    inbox.deliver(*names(60), body=b"x" * 100_000)
    batch(inbox.connection, inbox.registry)
    tracemalloc.start()

    claim = claim_batch(inbox.connection, inbox.registry)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert claim.unripe is not None
    assert peak < 1_000_000


def test_batch_whose_bodies_fill_the_memory_waits_for_no_more(inbox, monkeypatch):
    monkeypatch.setattr(due_rows, "MAX_BYTES", 500_000)
    on_batches(inbox, Batches().handler, most=100, wait=timedelta(seconds=30))
    inbox.deliver(*names(8), body=b"x" * 100_000)

    assert len(claim_batch(inbox.connection, inbox.registry).batch) == 5


def test_heavy_bodies_are_loaded_when_their_batch_is_run(inbox, monkeypatch):
    monkeypatch.setattr(due_rows, "HEAVY", 50_000)
    sizes = []

    def handler(events, _tx):
        sizes.append([len(event.raw) for event in events])

    on_batches(inbox, handler)
    inbox.deliver(*names(10), body=b"x" * 100_000)

    work_to_the_end(inbox)

    assert sizes == [[100_000] * 8, [100_000] * 2]


def take_crowd(inbox, *kinds, name="handler", **options):
    """Claim a batch that is filled up with due events of these kinds; return the events and the claim."""
    size = inbox.registry.named(name).batch
    wanted = Waiting(Waits.BATCH, [name], size.most, size.wait, kinds, **options)
    claim = claims.claim(inbox.connection, Plan(inbox.registry, batch=name), wanted=wanted, at_once=size.most)
    return [run.event.event_id for run in claim.runs], claim


CROWD = ("stripe", "payment.done")


def test_crowd_is_taken_from_where_it_is_due(inbox):
    on_batches(inbox, Batches().handler, most=10)
    inbox.on(effect)
    inbox.deliver(*names(18), type=CROWD[1])

    assert take_crowd(inbox)[0] == []
    assert [take_crowd(inbox, CROWD)[0] for _ in range(2)] == [names(18)[:10], names(18)[10:]]
    waiting = (
        "SELECT count(*) FROM hookonce.queue WHERE handler = 'effect' AND waits IS NULL AND token IS NULL"
    )
    assert inbox.rows(waiting) == [(18,)]


def test_batch_is_filled_up_and_leaves_what_is_not_its_own(inbox):
    on_batches(inbox, Batches().handler, most=10, pattern="mine")
    inbox.on(effect, pattern="other")
    inbox.deliver(*names(4), type="mine")
    batch(inbox.connection, inbox.registry)
    inbox.deliver("other_1", type="other")
    inbox.deliver("new_1", "new_2", type="mine")
    inbox.connection.execute(
        "UPDATE hookonce.queue SET attempts = 1 WHERE type = 'mine' AND waits IS NULL AND event = "
        "(SELECT max(event) FROM hookonce.queue)"
    )

    taken, _ = take_crowd(inbox, ("stripe", "mine"), ("stripe", "other"))

    assert taken == [*names(4), "new_1"]
    assert inbox.rows("SELECT handler, waits FROM hookonce.queue WHERE token IS NULL") == [(None, None)] * 2


def test_part_of_a_batch_is_not_filled_up(inbox):
    on_batches(inbox, Batches().handler, most=10)
    inbox.deliver(*names(4))
    batch(inbox.connection, inbox.registry)
    inbox.connection.execute("UPDATE hookonce.queue SET waits = 'batch:0004:1'")
    inbox.deliver("new", type=CROWD[1])

    assert take_crowd(inbox, CROWD)[0] == names(4)


def test_crowd_that_is_too_few_waits_for_more(inbox):
    on_batches(inbox, Batches().handler, most=10, wait=timedelta(hours=1))
    inbox.deliver(*names(4), type=CROWD[1])

    taken, claim = take_crowd(inbox, CROWD)

    assert (taken, claim.unripe is not None) == ([], True)


def test_worker_takes_a_crowd_in_whole_batches(inbox):
    taken = Batches()
    on_batches(inbox, taken.handler, most=100)
    inbox.deliver(*names(250))

    work_to_the_end(inbox)

    assert taken.sizes == [100, 100, 50]
