"""Workers that give a handler different numbers of attempts, side by side: the largest that is alive holds."""

import dataclasses
from datetime import timedelta

import pytest

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.handlers import Registry, RetryLater
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.ledger.handlers import MOST_ANNOUNCED, register_handlers
from hookonce.receiver.ledger.runs import takeover
from hookonce.receiver.ledger.runs.run_limits import BatchSize, Rate, RunLimit
from tests.support.claiming import claim, claim_suspect, lapse
from tests.support.django_project import entry
from tests.support.inbox import inbox
from tests.support.waiting import until

__all__ = ["entry", "inbox"]

OLD, NEW = 2, 5
NOTHING = timedelta(0)


class Calls:
    """A handler that fails, in whatever way it is called, and counts what it was given."""

    def __init__(self):
        self.attempts = []
        self.error = ArithmeticError

    def fails(self, event, _tx):
        self.attempts.append(event.attempt)
        raise self.error("again")

    def fails_long(self, event):
        self.fails(event, None)

    def fails_together(self, events, _tx):
        self.attempts += [each.attempt for each in events]
        raise self.error("again")

    async def awaits(self, event, tx):
        self.fails(event, tx)


@pytest.fixture
def calls():
    return Calls()


class Deploy:
    """Two releases of one handler, an old worker of the one and a new one of the other."""

    def __init__(self, inbox, function, *, old=OLD, new=NEW, place="stripe", **options):
        self.inbox = inbox
        inbox.on(function, attempts=old, **options)
        (handler,) = inbox.registry
        self.registries = {
            name: self._registry(dataclasses.replace(handler, place=place, attempts=number))
            for name, number in (("old", old), ("new", new))
        }

    def _registry(self, handler):
        registry = Registry()
        registry.add(handler)
        return registry

    def worker(self, name, kind=SingleSlot, transactions=None, **options):
        """Start a worker of one of the two, which announces its handler as each does before it works."""
        drain = kind(
            self.inbox.settings, self.registries[name], transactions or HandlerTransactions, **options
        )
        self.inbox.drains.append(drain)
        drain.requeue_ignored()
        return drain


def work_to_the_end(inbox, *drains):
    """Have workers look until no run is open; return how the runs have ended."""

    def are_over():
        for drain in drains:
            drain.run_due()
        found = inbox.runs()
        return bool(found) and all(status in {"done", "dead"} for _, _, status, _ in found)

    until(are_over)
    return {row[2:] for row in inbox.runs()}


WAYS = {
    "plain": ("fails", {}),
    "async": ("awaits", {}),
    "long": ("fails_long", {"tx": "none"}),
    "batch": ("fails_together", {"batch": BatchSize(3, NOTHING)}),
    "rate": ("fails", {"limit": RunLimit(Rate.parse("1000/s"))}),
    "one at once": ("fails", {"limit": RunLimit(concurrency=1)}),
}


@pytest.mark.parametrize("way", WAYS)
def test_old_worker_gives_a_run_the_attempts_that_a_new_one_has_announced(inbox, calls, way):
    function, options = WAYS[way]
    deploy = Deploy(inbox, getattr(calls, function), **options)
    old = deploy.worker("old")
    deploy.worker("new")
    inbox.deliver("a")

    assert work_to_the_end(inbox, old) == {("dead", NEW)}
    assert calls.attempts == [1, 2, 3, 4, 5]


@pytest.mark.usefixtures("entry")
def test_old_worker_in_django_gives_the_attempts_that_a_new_one_has_announced(inbox, calls):
    deploy = Deploy(inbox, calls.fails)
    old = deploy.worker("old", transactions=DjangoTransactions)
    deploy.worker("new")
    inbox.deliver("a")

    assert work_to_the_end(inbox, old) == {("dead", NEW)}


def test_old_worker_of_many_slots_gives_the_attempts_that_a_new_one_has_announced(inbox, calls):
    deploy = Deploy(inbox, calls.fails)
    old = deploy.worker("old", kind=Pool, slots=3)
    deploy.worker("new")
    inbox.deliver("a", "b", "c")

    assert work_to_the_end(inbox, old) == {("dead", NEW)}


def test_command_has_the_attempts_that_a_new_worker_has_announced(inbox, calls):
    deploy = Deploy(inbox, calls.fails, place="command.payments")
    old = deploy.worker("old")
    deploy.worker("new")
    inbox.deliver("a", source="command.payments", provider=COMMAND)

    assert work_to_the_end(inbox, old) == {("dead", NEW)}


@pytest.mark.parametrize(("old", "new"), [(1, 3), (2, 3), (3, 1), (3, 3)])
def test_workers_side_by_side_give_the_larger_number(inbox, calls, old, new):
    deploy = Deploy(inbox, calls.fails, old=old, new=new)
    workers = [deploy.worker(name) for name in ("old", "new")]
    inbox.deliver(*"abcd")

    assert work_to_the_end(inbox, *workers) == {("dead", 3)}
    assert sorted(calls.attempts) == sorted([1, 2, 3] * 4)


def test_events_of_a_batch_have_the_larger_number_where_each_attempt_is_the_last(inbox, calls):
    deploy = Deploy(inbox, calls.fails_together, old=1, new=3, batch=BatchSize(4, NOTHING))
    old = deploy.worker("old")
    deploy.worker("new")
    inbox.deliver(*"abcd")

    assert work_to_the_end(inbox, old) == {("dead", 3)}


class AskedOddly(RetryLater):
    """An error of the handler's own that asks for no time."""

    def __init__(self, event):
        super().__init__(0, event=event)
        self.delay = "soon"


def test_event_of_a_batch_that_asks_oddly_has_the_larger_number(inbox):
    def asks(events, _tx):
        raise AskedOddly(events[0])

    deploy = Deploy(inbox, asks, old=1, new=3, batch=BatchSize(4, NOTHING))
    old = deploy.worker("old")
    deploy.worker("new")
    inbox.deliver(*"ab")

    assert work_to_the_end(inbox, old) == {("dead", 3)}


def test_run_is_not_buried_that_was_under_way_when_a_new_worker_came(inbox, calls):
    came = []

    def works(event):
        came.append(len(came) or deploy.worker("new"))
        calls.fails_long(event)

    deploy = Deploy(inbox, works, old=1, tx="none")
    old = deploy.worker("old")
    inbox.deliver("a")

    assert work_to_the_end(inbox, old) == {("dead", NEW)}


@pytest.mark.parametrize("waits", [None, "suspect"])
def test_old_worker_calls_the_handler_for_a_run_that_has_used_up_its_number(inbox, calls, waits):
    deploy = Deploy(inbox, calls.fails)
    old = deploy.worker("old")
    deploy.worker("new")
    inbox.deliver("a")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'fails', attempts = 3, waits = %s", [waits])

    assert work_to_the_end(inbox, old) == {("dead", NEW)}
    assert calls.attempts == [4, 5]


def test_run_that_workers_lost_has_the_larger_number(inbox, calls):
    deploy = Deploy(inbox, calls.fails)
    deploy.worker("new")
    inbox.deliver("a")
    registry = deploy.registries["old"]
    claim(inbox.connection, registry)
    lapse(inbox.connection)
    takeover.take_over(inbox.connection)

    for number in range(1, NEW + 1):
        assert claim_suspect(inbox.connection, registry).attempt == number
        lapse(inbox.connection)
        takeover.take_over(inbox.connection)

    assert [row[2:] for row in inbox.runs()] == [("dead", NEW)]


@pytest.mark.parametrize("age", ["11 minutes", "-3 hours"])
def test_number_of_a_worker_that_is_gone_holds_no_longer(inbox, calls, age):
    deploy = Deploy(inbox, calls.fails, old=5, new=2)
    deploy.worker("old").close()
    new = deploy.worker("new")
    inbox.connection.execute(
        "UPDATE hookonce.handler_attempts SET announced_at = now() - %s::interval WHERE attempts = 5", [age]
    )
    inbox.deliver("a")

    assert work_to_the_end(inbox, new) == {("dead", 2)}
    new.requeue_ignored()
    assert inbox.rows("SELECT attempts FROM hookonce.handler_attempts") == [(2,)]


@pytest.mark.parametrize("age", ["6 minutes", "11 minutes", "-3 hours"])
def test_number_of_a_worker_that_is_alive_is_announced_anew(inbox, calls, age):
    worker = Deploy(inbox, calls.fails).worker("new")
    inbox.connection.execute(
        "UPDATE hookonce.handler_attempts SET announced_at = now() - %s::interval", [age]
    )

    worker.requeue_ignored()

    ((announced, now),) = inbox.rows("SELECT announced_at, now() FROM hookonce.handler_attempts")
    assert timedelta(0) <= now - announced < timedelta(minutes=1)
    most = MOST_ANNOUNCED.format(handler="'fails'")
    assert inbox.rows(f"SELECT {most}") == [(NEW,)]


def test_other_handlers_numbers_are_their_own(inbox, calls):
    deploy = Deploy(inbox, calls.fails)
    old = deploy.worker("old")
    register_handlers(inbox.connection, [("another", "stripe", "*", 9, timedelta(seconds=30), None)])
    inbox.deliver("a")

    assert work_to_the_end(inbox, old) == {("dead", OLD)}
