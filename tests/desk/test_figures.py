"""What became of all that was accepted: a full count of the ledger, and the same numbers whichever way one asks."""

import re
from collections import Counter
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.maintenance import erasure
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.store import store
from tests.desk.conftest import WAYS
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state

HOUR = timedelta(hours=1)
STATUSES = {"done": 3, "dead": 1, "ignored": 1, "waiting": 1, "running": 1, "held": 1, "received": 1}


def fails(*_):
    raise ValueError


@pytest.fixture(scope="module")
def walked(inbox):
    """A ledger whose events were run, failed, replayed, pruned and erased, and one or two are left in each status."""
    registry = Registry()
    for name, kind, function, attempts in (
        ("shop.ok", "ok", lambda *_: None, 1),
        ("shop.bad", "bad", fails, 1),
        ("shop.later", "later", fails, 3),
    ):
        registry.add(Handler(name, "stripe", kind, function, attempts, (HOUR, HOUR), timedelta(seconds=5)))
    connection = inbox.connection

    def deliver(kind, *ids):
        keys = store(connection, [new_event(each, type=kind) for each in ids])
        return [row.id for row in keys.values()]

    slot = SingleSlot(load_settings(), registry)
    first, _, pruned, erased = deliver("ok", "a", "b", "c", "d")
    for kind in ("bad", "later", "unknown"):
        deliver(kind, kind)
    slot.run_due()
    assert [each.is_whole for each in replays.replay(connection, [first], "somebody", again=True)] == [True]
    slot.run_due()
    slot.close()
    for kind in ("held", "running", "received"):
        (event,) = deliver(kind, kind)
        put_into_state(connection, event, kind)
    connection.execute(
        "UPDATE hookonce.events SET received_at = now() - interval '1000 days' WHERE id = %s", [pruned]
    )
    inbox.app.test_client(use_cookies=False).post("/api/v1/prune", json={}, headers=inbox.headers)
    erasure.erase(connection, [erased], "somebody")
    return inbox


def counted(connection):
    rows = connection.execute("SELECT status, count(*) FROM hookonce.event_states GROUP BY status").fetchall()
    return dict(rows)


@pytest.mark.usefixtures("walked")
def test_figures_are_those_of_a_full_count_and_add_up_in_each_way(everywhere):
    there = counted(everywhere.connection)
    told = {way: everywhere.ask(way, "get_stats", {}, ["stats", "--json"]) for way in WAYS if way != "page"}

    assert there == STATUSES
    for way, stats in told.items():
        account = dict(stats["account"])
        by_status = Counter()
        for row in stats["events"]:
            by_status[row["status"]] += row["count"]
        assert (way, dict(by_status), stats["dead"], stats["held"]) == (way, STATUSES, 1, 1)
        assert (way, account.pop("accepted"), account.pop("replayed")) == (way, sum(account.values()), 1)
        assert (way, account) == (way, {**STATUSES, "pruned": 1})


@pytest.mark.usefixtures("walked")
def test_count_of_each_status_is_that_of_a_full_count(everywhere):
    for status, number in STATUSES.items():
        command = ["replay", "--status", status, "--dry-run", "--json"]
        found = {
            way: everywhere.ask(way, "count_events", {"status": status}, command)
            for way in ("api", "tool", "page")
        }
        assert {way: int(each["total"]) for way, each in found.items()} == dict.fromkeys(found, number), (
            status
        )
        listed = everywhere.run("events", "list", "--status", status, "--json").documents
        assert len(listed) == number


@pytest.mark.usefixtures("walked")
def test_pages_and_metrics_say_the_same(everywhere):
    page = everywhere.browser.get("/admin/").text
    stats = everywhere.browser.get("/admin/operations/get_stats").text
    metrics = everywhere.app.test_client().get("/metrics").text
    samples = [each for family in text_string_to_metric_families(metrics) for each in family.samples]
    of_stripe = [each for each in samples if each.labels.get("source") == "stripe"]
    by_status = {each.labels["status"]: each.value for each in of_stripe if each.name == "hookonce_events"}
    totals = {each.name: each.value for each in of_stripe if "status" not in each.labels}

    assert {status: n for status, n in by_status.items() if n} == STATUSES
    assert totals["hookonce_events_accepted_total"] == sum(STATUSES.values()) + 1
    assert totals["hookonce_events_pruned_total"] == 1
    table = page[page.index("in the ledger now, by status") :]
    row = table[: table.index("</tr>", table.index("<tbody>"))]
    for status, number in {**STATUSES, "events": sum(STATUSES.values())}.items():
        cell = row.partition(f'data-label="{status}">')[2].partition("</td>")[0]
        assert (status, f">{number}<" in f">{cell}<") == (status, True)
    account = dict(re.findall('data-label="name">([a-z]+)</td><td data-label="value">([0-9]+)<', stats))
    assert (account["accepted"], account["pruned"]) == ("10", "1")
