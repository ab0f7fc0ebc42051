"""`@on_batch` in Django: what its ORM writes commits with all runs of the batch, or with none."""

import sys
from datetime import timedelta

import pytest
from django.db import models, transaction

from hookonce import GiveUp
from hookonce.django.coroutines import DjangoEventLoop
from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.receiver.ledger.stats import counters
from tests.jobs.test_batches import names, on_batches, work_to_the_end
from tests.support.django_project import entry
from tests.support.inbox import inbox as plain_inbox
from tests.support.kept_lines import keeping_lines

__all__ = ["entry", "plain_inbox"]

LEFT = "SELECT (SELECT count(*) FROM hookonce.claims), (SELECT count(*) FROM hookonce.guards)"
COUNTED = "SELECT batches, events, halvings FROM hookonce.batch_counts"


class BatchEffect(models.Model):
    event = models.TextField(primary_key=True)

    class Meta:
        app_label = "hookonce"
        db_table = "effects"
        managed = False


def write(events):
    BatchEffect.objects.bulk_create(BatchEffect(event=event.event_id) for event in events)


@pytest.fixture
def inbox(plain_inbox, entry):
    plain_inbox.transactions = DjangoTransactions
    return plain_inbox


def test_writes_of_the_orm_commit_with_all_runs(inbox):
    def book(events, connection):
        write(events)
        sys.stdout.write("booked\n")
        return [{"of": event.event_id} for event in events]

    on_batches(inbox, book)
    inbox.deliver(*names(3))

    with keeping_lines():
        inbox.work()

    assert inbox.effects() == names(3)
    assert inbox.rows("SELECT result->>'of', status, attempts FROM hookonce.run_states ORDER BY 1") == [
        (name, "done", 1) for name in names(3)
    ]
    assert (inbox.rows(LEFT), inbox.rows(COUNTED)) == ([(0, 0)], [(1, 3, 0)])
    assert inbox.rows("SELECT event FROM hookonce.run_logs ORDER BY id") == [(1,), (2,), (3,)]


def test_one_event_that_fails_takes_no_other_along(inbox):
    def book(events, connection):
        write(events)
        if "evt_005" in {event.event_id for event in events}:
            raise ValueError("no such customer")

    on_batches(inbox, book, attempts=1)
    inbox.deliver(*names(8))

    work_to_the_end(inbox)

    assert inbox.effects() == [name for name in names(8) if name != "evt_005"]
    assert {run[0] for run in inbox.runs() if run[2] == "dead"} == {"evt_005"}
    assert {run[3] for run in inbox.runs()} == {1}
    assert inbox.rows(LEFT) == [(0, 0)]


def test_event_that_is_given_up_by_name_is_dead_and_the_rest_is_done(inbox):
    def book(events, connection):
        write(events)
        if bad := [event for event in events if event.event_id == "evt_001"]:
            raise GiveUp("an invoice of nobody", event=bad)

    on_batches(inbox, book)
    inbox.deliver(*names(4))

    work_to_the_end(inbox)

    assert inbox.effects() == ["evt_000", "evt_002", "evt_003"]
    assert [run[2] for run in inbox.runs()] == ["done", "dead", "done", "done"]


def test_nothing_stays_of_a_batch_that_another_worker_has(inbox):
    def book(events, connection):
        write(events)
        inbox.steal()

    on_batches(inbox, book)
    inbox.deliver(*names(3))

    inbox.work()

    assert inbox.effects() == []
    assert {run[2] for run in inbox.runs()} == {"running"}


def test_batch_that_commits_past_django_is_not_repeated(inbox):
    def book(events, connection):
        write(events)
        connection.connection.execute("COMMIT")
        raise ValueError("too late")

    on_batches(inbox, book)
    inbox.deliver(*names(3))

    work_to_the_end(inbox)

    assert inbox.effects() == []
    assert {run[2] for run in inbox.runs()} == {"dead"}


def test_hook_of_on_commit_is_called_once_for_a_batch(inbox, caplog):
    seen = []

    def book(events, connection):
        write(events)
        transaction.on_commit(lambda: seen.append(len(inbox.effects())))
        transaction.on_commit(lambda: 1 / 0)

    on_batches(inbox, book)
    inbox.deliver(*names(3))

    inbox.work()

    assert seen == [3]
    assert {run[2] for run in inbox.runs()} == {"done"}
    assert "a hook of on_commit failed: ZeroDivisionError" in caplog.text


def test_bodies_that_are_not_to_be_kept_go_with_the_batch(inbox):
    on_batches(inbox, lambda events, _: write(events))
    inbox.deliver(*names(3), keep_body=False)
    inbox.deliver("kept")

    inbox.work()

    assert inbox.rows("SELECT count(*) FROM hookonce.bodies") == [(1,)]
    assert inbox.effects() == [*names(3), "kept"]


def test_async_handler_takes_a_batch(inbox):
    async def book(events, connection):
        for event in events:
            await BatchEffect.objects.acreate(event=event.event_id)

    inbox.transactions = lambda connection: DjangoTransactions(connection, event_loop=DjangoEventLoop)
    on_batches(inbox, book)
    inbox.deliver(*names(3))

    inbox.work()

    assert inbox.effects() == names(3)
    assert {run[2] for run in inbox.runs()} == {"done"}


def test_failure_after_the_commit_repeats_nothing(inbox, monkeypatch):
    calls = []

    def book(events, connection):
        calls.append(len(events))
        write(events)

    def fail(connection, handler, events):
        raise RuntimeError("no space left to count")

    monkeypatch.setattr(counters, "count_batch", fail)
    on_batches(inbox, book)
    inbox.deliver(*names(4))

    work_to_the_end(inbox)

    assert (calls, inbox.effects()) == ([4], names(4))
    assert {run[2] for run in inbox.runs()} == {"done"}
    assert inbox.rows(LEFT) == [(0, 0)]


def test_batch_that_takes_too_long_is_rolled_back_and_halved(inbox):
    sizes = []

    def book(events, connection):
        sizes.append(len(events))
        write(events)
        if len(events) > 1:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(5)")

    on_batches(inbox, book, timeout=timedelta(milliseconds=200))
    inbox.deliver(*names(2))

    work_to_the_end(inbox)

    assert (sizes, inbox.effects()) == ([2, 1, 1], names(2))
