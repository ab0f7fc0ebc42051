"""What operators come for, done with a browser on the running inbox."""

import re

import pytest

from hookonce.receiver.dashboard.sessions import Sessions
from tests.e2e.conftest import TOKEN

expect = pytest.importorskip("playwright.sync_api").expect


def row(page, text):
    return page.get_by_role("row").filter(has_text=text)


def test_token_signs_in_and_the_page_before_is_shown(window):
    page = window(signed_in=False)

    page.goto("/admin/events?status=dead")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_label("Your name").fill("Grace")
    page.get_by_role("button", name="Sign in").click()

    expect(page).to_have_url(re.compile("/admin/events\\?status=dead$"))
    expect(page.get_by_text("Grace")).to_be_visible()


def test_link_signs_in_and_leaves_nothing_in_the_address(window):
    page = window(signed_in=False)

    page.goto(f"/admin/sign-in#link={Sessions(TOKEN).link()}")

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.evaluate("location.hash + history.length") == "2"


def test_event_is_found_by_the_beginning_of_its_id(inbox, page, picture):
    inbox.invoice("evt_1SfindMe0042")
    page.goto("/admin/")

    page.get_by_role("searchbox").fill("evt_1Sfind")
    page.get_by_role("searchbox").press("Enter")

    expect(page.get_by_role("heading", name="invoice.paid")).to_be_visible()
    expect(page.get_by_text("stripe:evt_1SfindMe0042")).to_be_visible()
    expect(page.locator("#status")).to_have_text("done")
    expect(page.locator("#body")).to_contain_text('"amount_paid": 4200')
    picture(page, "event")


def test_dead_event_says_why_and_succeeds_when_it_is_replayed(inbox, page, picture):
    inbox.breaks()
    inbox.invoice("evt_1Sdies")
    page.goto("/admin/events?id=evt_1Sdies")
    page.get_by_role("link", name="evt_1Sdies").click()
    expect(page.locator("#status")).to_have_text("dead")
    failure = page.get_by_text("the shop's database refuses connections")
    expect(page.get_by_text("ConnectionError at shop.py:14")).to_be_visible()
    expect(failure.first).to_be_visible()
    expect(row(page, "evt_1Sdies")).to_contain_text("dead")
    picture(page, "dead-event")

    inbox.mends()
    page.get_by_role("button", name="Replay", exact=True).click()

    expect(page.get_by_text("its runs have new attempts")).to_be_visible()
    expect(page.locator("#status")).to_have_text("done")
    expect(page.get_by_text('{"credited": "evt_1Sdies"}')).to_be_visible()


def test_five_hundred_dead_events_are_replayed_and_watched(inbox, ledger, page, picture):
    inbox.breaks()
    inbox.fill(500, "evt_1Sbulk")
    died = "SELECT count(*) FROM hookonce.event_states WHERE status = 'dead' AND event_id LIKE 'evt_1Sbulk%'"
    inbox.until(died, 500)
    page.goto("/admin/issues")
    issue = row(page, "the shop's database refuses connections")
    expect(issue).to_contain_text("500")
    picture(page, "issues")
    issue.get_by_role("link").click()
    expect(page.get_by_label("Code").first).to_be_visible()
    picture(page, "issue")

    inbox.mends()
    page.get_by_role("button", name="Replay 500 dead events").click()

    expect(page.get_by_role("heading", name="Finished")).to_be_visible()
    expect(page.locator("#done")).to_have_text("500")
    picture(page, "bulk-replay")
    assert ledger.execute(died).fetchone() == (0,)


def test_new_events_appear_while_one_watches(inbox, page, picture):
    page.goto("/admin/events")
    expect(page.get_by_text("new events appear here")).to_be_visible()

    inbox.invoice("evt_1Snew")

    expect(row(page, "evt_1Snew")).to_contain_text("done")
    picture(page, "events")


def test_pages_can_be_read_and_used_without_javascript(inbox, window):
    inbox.invoice("evt_1Splain")
    page = window(java_script_enabled=False)
    page.goto("/admin/")
    page.get_by_role("searchbox").fill("evt_1Splain")
    page.get_by_role("searchbox").press("Enter")

    page.get_by_text("As a curl command").click()
    expect(page.locator("#curl")).to_contain_text("curl -X POST")
    page.get_by_role("button", name="Replay", exact=True).click()
    page.get_by_role("button", name="Run again").click()

    expect(page.get_by_text(re.compile("its runs have new attempts|is running"))).to_be_visible()
