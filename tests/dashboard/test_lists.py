import uuid

import pytest

from hookonce.receiver.dashboard.tabs import TABS
from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import bulk
from tests.dashboard.test_events import EVIL
from tests.support import desk


@pytest.mark.parametrize(
    ("path", "leads_on"),
    [
        ("alerts", "No destination configured"),
        ("stopped-steps", "event.step("),
        ("commands", "[commands.NAME]"),
        ("bulk", "/admin/bulk/new?status=dead"),
        ("limits", "concurrency=5"),
        ("limits", "breaker=5"),
    ],
)
def test_empty_page_says_how_to_go_on(browser, path, leads_on):
    assert leads_on in browser.get(f"/admin/{path}").text


def test_there_are_six_tabs_and_each_page_is_in_one(inbox):
    endpoints = {rule.endpoint for rule in inbox.app.url_map.iter_rules()}
    named = [each for tab in TABS for page in tab.pages for each in (page.endpoint, *page.opens)]

    assert len(TABS) <= 6
    assert set(named) <= endpoints
    assert len(set(named)) == len(named)


def test_alerts_are_shown_with_the_way_to_their_cause(inbox, browser):
    alerts.raise_alert(inbox.connection, "dead_runs", "stripe", "3 events died; see `hookonce issues`")
    ended = alerts.raise_alert(inbox.connection, "source_silent", "github", "no delivery")
    alerts.resolve(inbox.connection, ended)

    page = browser.get("/admin/alerts").text

    assert (
        'href="/admin/events?status=dead&amp;source=stripe">See the dead events, fix the cause, replay</a>'
        in page
    )
    assert page.count("source silent") == 1
    assert "3 events died" in page
    assert "hookonce issues" not in page


def test_test_alert_needs_somebody_who_hears_of_it(browser):
    browser.get("/admin/alerts")

    assert browser.post("/admin/alerts/test").status_code == 409


def test_stopped_step_leads_to_its_event(inbox, browser):
    (event,) = inbox.store("evt_1")
    inbox.connection.execute(
        "INSERT INTO hookonce.steps (event, handler, name, state, owner, note) "
        "VALUES (%s, 'shop.pay', 'mail', 'failed_final', %s, %s)",
        [event, uuid.uuid4(), EVIL],
    )

    page = browser.get("/admin/stopped-steps").text

    assert f'href="/admin/events/{event}#steps">mail</a>' in page
    assert "<script>alert" not in page


def test_bulk_replays_are_listed_with_their_filters(inbox, browser):
    inbox.die(*inbox.store("evt_1"))
    bulk.start(inbox.connection, Filter(status="dead", source="stripe"), "me")

    page = browser.get("/admin/bulk").text

    assert '<a class="id" href="/admin/bulk/1">1</a>' in page
    assert "source <b>stripe</b>, status <b>dead</b>" in page


def test_audit_goes_on_page_by_page(inbox, browser):
    for number in range(60):
        audit_log.note(inbox.connection, "me", "pause", f"handler {number:03}", {"why": EVIL})

    first = browser.get("/admin/audit")
    older = first.text.split('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
    rest = browser.get(older.replace("&amp;", "&")).text

    assert "handler 059" in first.text
    assert "handler 009" not in first.text
    assert "handler 009" in rest
    assert "<script>alert" not in first.text


def test_limits_say_what_waits_and_breakers_what_they_stopped(inbox, browser):
    desk.wait_for_place(inbox.connection, "shop.credit", 3)
    desk.fail_in_a_row(inbox.connection, "shop.mail", 5, limit=5)

    page = browser.get("/admin/limits").text

    assert "ConnectionError (shop.py:7)" in page
    assert "Resume" in page


def test_refusal_of_the_desk_is_told_in_the_style_of_the_pages(browser):
    page = browser.get("/admin/issues/ffffffffffff")

    assert "no issue has the id ffffffffffff" in page.text
    assert [page.status_code, browser.get("/admin/issues/nonsense").status_code] == [404, 404]
