"""What a batch is claimed of: past what waits for other handlers, within the memory that it may take."""

import tracemalloc
from datetime import timedelta

import pytest

from hookonce.receiver.ledger.runs import batch_claims, due_for_batch, ends
from hookonce.receiver.ledger.runs.due_cursor import BatchCursor, DueCursor
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus
from tests.jobs.test_batches import Batches, names, on_batches, work_to_the_end
from tests.support.claiming import NO_TIME, claim_batch
from tests.support.inbox import effect


def take_all(inbox, handler="handler", cursor=None):
    """Claim a batch and end it as done; return how many it had."""
    batch = claim_batch(inbox.connection, inbox.registry, handler, cursor=cursor).batch
    if batch is None:
        return 0
    inbox.connection.execute("BEGIN")
    done = [AttemptResult(RunStatus.DONE)] * len(batch.runs)
    ends.end(inbox.connection, ends.Ended(batch.runs, done, NO_TIME))
    return len(batch.runs)


@pytest.mark.parametrize("most", [10, 500])
def test_batch_finds_what_is_new_behind_all_that_waits_for_another_handler(inbox, most, monkeypatch):
    monkeypatch.setattr(due_for_batch, "REACH", 20)
    on_batches(inbox, Batches().handler, most=most)
    inbox.on(effect)
    inbox.deliver(*names(600))
    cursor = BatchCursor(DueCursor())
    while take_all(inbox, cursor=cursor):
        pass
    inbox.deliver(*(f"new_{n}" for n in range(10)))

    assert [take_all(inbox, cursor=cursor), take_all(inbox, cursor=cursor)] == [10, 0]
    assert inbox.rows("SELECT count(*) FROM hookonce.queue WHERE due_at <= now()") == [(610,)]


def test_batch_passes_by_what_became_due_all_at_once(inbox, monkeypatch):
    monkeypatch.setattr(due_for_batch, "REACH", 20)
    on_batches(inbox, Batches().handler, most=10)
    inbox.on(effect)
    inbox.deliver(*names(300))
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 min'")
    cursor = BatchCursor(DueCursor())

    assert [take_all(inbox, cursor=cursor) for _ in range(31)] == [10] * 30 + [0]


def test_look_for_a_batch_that_is_broken_off_goes_on(inbox, monkeypatch):
    monkeypatch.setattr(due_for_batch, "REACH", 20)
    on_batches(inbox, Batches().handler, most=10)
    inbox.on(effect)
    inbox.deliver(*names(300))
    while take_all(inbox):
        pass
    one_by_one = "UPDATE hookonce.queue SET due_at = now() - interval '10 s' + event * interval '1 ms'"
    inbox.connection.execute(one_by_one)
    monkeypatch.setattr(batch_claims, "_LOOKS", 2)
    inbox.deliver("new")
    cursor, looks = BatchCursor(DueCursor()), 1

    while (found := claim_batch(inbox.connection, inbox.registry, cursor=cursor)).alone is None:
        looks += 1
        assert looks < 20

    assert found.alone.event.event_id == "new"
    assert looks > 2


def test_batch_reads_no_more_bodies_than_it_takes(inbox, monkeypatch):
    monkeypatch.setattr(batch_claims, "MAX_BYTES", 1_000_000)
    taken = Batches()
    on_batches(inbox, taken.handler, most=100)
    inbox.deliver(*names(60), body=b"x" * 100_000)
    tracemalloc.start()

    claim = claim_batch(inbox.connection, inbox.registry)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(claim.batch.runs), claim.batch.is_full) == (10, True)
    assert all(run.event.body for run in claim.batch.runs)
    assert peak < 3_000_000


def test_batch_that_waits_for_more_reads_no_body(inbox):
    on_batches(inbox, Batches().handler, most=100, wait=timedelta(seconds=30))
    inbox.deliver(*names(60), body=b"x" * 100_000)
    tracemalloc.start()

    claim = claim_batch(inbox.connection, inbox.registry)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert claim.unripe is not None
    assert peak < 1_000_000


def test_batch_whose_bodies_fill_the_memory_waits_for_no_more(inbox, monkeypatch):
    monkeypatch.setattr(batch_claims, "MAX_BYTES", 500_000)
    on_batches(inbox, Batches().handler, most=100, wait=timedelta(seconds=30))
    inbox.deliver(*names(8), body=b"x" * 100_000)

    assert len(claim_batch(inbox.connection, inbox.registry).batch.runs) == 5


def test_heavy_bodies_are_loaded_when_their_batch_is_run(inbox, monkeypatch):
    monkeypatch.setattr(due_for_batch, "HEAVY", 50_000)
    sizes = []

    def handler(events, _tx):
        sizes.append([len(event.raw) for event in events])

    on_batches(inbox, handler)
    inbox.deliver(*names(10), body=b"x" * 100_000)

    work_to_the_end(inbox)

    assert sizes == [[100_000] * 8, [100_000] * 2]
