"""What the API and `/metrics` tell of a process of several slots while it works."""

import threading
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookonce.receiver.ledger.runs.run_limits import BatchSize, RunLimit
from tests.api.conftest import open_inbox
from tests.support.desk import soon
from tests.support.inbox import effect
from tests.support.waiting import ENOUGH, until

__all__ = ["soon"]

HOUR = timedelta(hours=1)


@pytest.fixture
def desk(database_url, redis_url):
    with open_inbox(database_url, redis_url) as desk:
        yield desk


@pytest.fixture
def enough():
    """What handlers wait for; set at the end, come what may."""
    enough = threading.Event()
    yield enough
    enough.set()


def workers(desk):
    return desk.ask("GET", "/workers").json


def handlers(desk):
    return {row["name"]: row for row in desk.ask("GET", "/handlers").json["data"]}


def slots(desk):
    page = desk.app.test_client().get("/metrics").text
    (family,) = (each for each in text_string_to_metric_families(page) if each.name == "hookonce_slots")
    return {sample.labels["state"]: sample.value for sample in family.samples}


def waiting(desk):
    return [(each["handler"], each["event"]) for each in workers(desk)["long_transactions"]]


@pytest.mark.usefixtures("soon")
def test_desk_tells_of_slots_batches_limits_and_transactions_that_wait(inbox, pool_of, desk, enough):
    def waits(event, tx):
        effect(event, tx)
        enough.wait(ENOUGH)

    def looks(_event, _tx):
        enough.wait(ENOUGH)

    def collects(events, tx):
        effect(events[0], tx)
        enough.wait(ENOUGH)

    inbox.on(waits, pattern="waits", timeout=HOUR, limit=RunLimit(concurrency=1))
    inbox.on(looks, pattern="looks", timeout=HOUR)
    inbox.on(collects, pattern="collects", timeout=HOUR, batch=BatchSize(2, timedelta(0)))
    first, *_ = inbox.deliver("w1", "w2", "w3", type="waits")
    inbox.deliver("l1", "l2", type="looks")
    of_batch, _ = inbox.deliver("c1", "c2", type="collects")

    with pool_of(4) as pool:
        pool.run_due()
        until(lambda: sorted(waiting(desk)), [("collects", of_batch), ("waits", first)])
        until(lambda: slots(desk)["busy"], 3)
        told, listed = workers(desk)["data"], handlers(desk)
        in_use = slots(desk)
        enough.set()
        until(lambda: inbox.rows("SELECT count(*) FROM hookonce.event_states WHERE status = 'done'"), [(7,)])
        until(lambda: slots(desk)["busy"], 0)
        batches = handlers(desk)["collects"]["batches"]

    assert [(each["slots"], each["busy"], each["lost"]) for each in told] == [(4, 3, 0)]
    assert in_use == {"busy": 3, "free": 1, "lost": 0}
    assert {name: row["waiting_for_limit"] for name, row in listed.items()} == {
        "waits": 2,
        "looks": 0,
        "collects": 0,
    }
    assert (batches["batches"], batches["events"], batches["halvings"]) == (1, 2, 0)
    assert workers(desk) == {"data": [], "suspects": {}, "long_transactions": []}


@pytest.mark.usefixtures("soon")
def test_last_of_a_batch_that_stands_alone_is_named_too(inbox, pool_of, desk, enough):
    def collects(events, tx):
        effect(events[0], tx)
        enough.wait(ENOUGH)

    inbox.on(collects, timeout=HOUR, batch=BatchSize(2, timedelta(0)))
    (event,) = inbox.deliver("a")

    with pool_of(4) as pool:
        pool.run_due()
        until(lambda: waiting(desk), [("collects", event)])
        told = workers(desk)["data"]
        enough.set()
        until(lambda: inbox.rows("SELECT status FROM hookonce.event_states"), [("done",)])

    assert [(each["slots"], each["busy"]) for each in told] == [(4, 0)]
