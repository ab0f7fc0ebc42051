import re

import pytest

from hookonce.receiver.ledger.replay import bulk


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
