import re

import pytest

from hookonce.jobs.handlers import Handler, Registry, timedelta
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.desk.dead_letters import pattern_of
from hookonce.receiver.ledger.replay import bulk
from tests.dashboard.test_events import shown


def test_group_leads_to_its_own_events_and_no_others(inbox, browser):
    dead = inbox.store("evt_1", "evt_2", "evt_3", "evt_4")
    inbox.die(dead[0], error="TimeoutError: took 31 s\nand more")
    inbox.die(dead[1], error="TimeoutError: took 29 s")
    inbox.die(dead[2], error="KeyError: 'x'")
    inbox.die(dead[3], handler="other", error="TimeoutError: took 31 s")

    found = {"status": "dead", "handler": "shop.credit", "error": pattern_of("TimeoutError: took 31 s")}
    page = browser.client.get("/admin/events", query_string=found)

    assert shown(page) == [dead[1], dead[0]]


def test_bulk_replay_asks_before_it_begins(inbox, browser):
    for number in inbox.store("evt_1", "evt_2"):
        inbox.die(number)

    page = browser.get("/admin/bulk/new?status=dead&since=1d").text

    assert "Replay 2 events" in page
    assert 'name="since" value="20' in page
    assert inbox.rows("SELECT count(*) FROM hookonce.bulk_replays") == [(0,)]


def test_events_that_take_too_long_to_be_counted_leave_the_filter_on_the_page(browser, monkeypatch):
    def count(connection, _):
        connection.execute("SET statement_timeout = 1")
        connection.execute("SELECT pg_sleep(60)")

    monkeypatch.setattr(bulk, "counts", count)

    page = browser.get("/admin/bulk/new?type=invoice.*")

    assert page.status_code == 200
    assert "too many to be counted" in page.text
    assert 'value="invoice.*"' in page.text


def test_bulk_replay_is_done_when_all_have_ended(inbox, browser):
    dead = inbox.store(*(f"evt_{n}" for n in range(3)))
    for number in dead:
        inbox.die(number)
    registry = Registry()
    takes_all = ("stripe", "*", lambda *_: None, 3, (timedelta(0), timedelta(0)), timedelta(seconds=5))
    registry.add(Handler("shop.credit", *takes_all))
    drain = SingleSlot(inbox.settings, registry)
    browser.get("/admin/bulk/new?status=dead")

    location = browser.post("/admin/bulk", status="dead", rate="").location
    drain.run_due()
    drain.close()
    page = browser.get(location).text

    assert '<dd id="replayed">3</dd>' in page
    assert '<dd id="done">3</dd>' in page
    assert "Finished" in page
    assert "hx-get" not in page
    assert ("admin (dashboard)", "bulk replay", "bulk replay 1") in inbox.audit()


def test_bulk_replay_can_be_stopped_and_taken_up_again(inbox, browser):
    for number in inbox.store("evt_1", "evt_2"):
        inbox.die(number)
    browser.get("/admin/bulk/new?status=dead")
    location = browser.post("/admin/bulk", status="dead", rate="1").location

    browser.get(location)
    assert browser.post(f"{location}/stop").location == location
    assert "Stopped" in browser.get(location).text
    browser.post(f"{location}/go-on")
    page = browser.get(location).text

    assert "Replaying" in page
    assert "hx-get" in page
    inbox.connection.execute("UPDATE hookonce.bulk_replays SET driven_at = now() - interval '2.5 seconds'")
    bulk.step(inbox.connection, 1)
    assert inbox.rows("SELECT replayed FROM hookonce.bulk_replays") == [(2,)]


@pytest.mark.parametrize(
    "form", [{}, {"status": "gone"}, {"status": "dead", "rate": "fast"}, {"status": "dead", "rate": "nan"}]
)
def test_bulk_replay_of_everything_or_nonsense_is_refused(inbox, browser, form):
    browser.get("/admin/bulk/new")

    assert browser.post("/admin/bulk", **form).status_code == 400
    assert inbox.rows("SELECT count(*) FROM hookonce.bulk_replays") == [(0,)]


def test_bulk_replay_of_more_than_its_page_showed_does_not_begin(inbox, browser):
    (first,) = inbox.store("evt_1")
    inbox.die(first)
    page = browser.get("/admin/bulk/new?status=dead").text
    (late,) = inbox.store("evt_2")
    inbox.die(late)

    answer = browser.post(
        "/admin/bulk", status="dead", expected=re.search('name="expected" value="(.)"', page)[1]
    )

    assert (answer.status_code, "2 events match by now, and 1 did" in answer.text) == (409, True)
    assert inbox.rows("SELECT count(*) FROM hookonce.bulk_replays") == [(0,)]
