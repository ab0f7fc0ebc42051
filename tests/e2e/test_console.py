"""The console by hand and by keyboard: choosing several, going from event to event, folding, finding in bodies."""

import itertools
import re

import pytest

NUMBERS = itertools.count(1)

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def dead(inbox):
    """Three dead events, mended since; gives how their ids begin."""
    begin = f"evt_1Skeys{next(NUMBERS)}_"
    inbox.breaks()
    for n in range(3):
        inbox.invoice(f"{begin}{n}")
    dead = f"SELECT count(*) FROM hookonce.event_states WHERE status = 'dead' AND event_id LIKE '{begin}%'"  # noqa: S608
    inbox.until(dead, 3)
    inbox.mends()
    yield begin
    inbox.buries(begin)


def test_several_events_are_chosen_and_replayed(inbox, page, dead):
    page.goto(f"/admin/events?id={dead}&status=dead")

    for n in (0, 2):
        page.get_by_role("row").filter(has_text=f"{dead}{n}").get_by_role("checkbox").check()
    page.get_by_role("button", name="Replay selected").click()

    expect(page.get_by_role("status")).to_have_text("Of the selected events: 2 replayed.")
    expect(page).to_have_url(re.compile(f"id={dead}&status=dead"))
    done = f"SELECT count(*) FROM hookonce.event_states WHERE status = 'done' AND event_id LIKE '{dead}%'"  # noqa: S608
    inbox.until(done, 2)


def test_row_opens_its_event_wherever_it_is_clicked(page, dead):
    page.goto(f"/admin/events?id={dead}")

    page.get_by_role("cell", name="invoice.paid").first.click()

    expect(page.get_by_text(f"stripe:{dead}2")).to_be_visible()


def test_keys_go_through_a_list_and_from_event_to_event(page, dead):
    page.goto(f"/admin/events?id={dead}")

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name=f"{dead}1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"stripe:{dead}1")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_text(f"stripe:{dead}0")).to_be_visible()
    page.keyboard.press("k")
    expect(page.get_by_text(f"stripe:{dead}1")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Replay", exact=True)).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_issue_is_found_replayed_and_watched_by_keyboard_alone(inbox, page, dead):
    page.goto("/admin/issues")

    page.keyboard.press("j")
    expect(page.get_by_role("link", name="ConnectionError in shop.")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Code").first).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("button", name=re.compile(r"Replay \d+ dead events"))).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Finished")).to_be_visible()
    done = f"SELECT count(*) FROM hookonce.event_states WHERE status = 'done' AND event_id LIKE '{dead}%'"  # noqa: S608
    inbox.until(done, 3)


def test_pages_of_a_tab_are_reached_by_keyboard(page):
    page.goto("/admin/issues")

    page.get_by_role("navigation", name="Issues").get_by_role("link", name="Alerts").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Alerts", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Alerts")).to_have_attribute("aria-current", "page")


def test_keys_are_told_and_can_be_turned_off(page, dead):
    page.goto(f"/admin/events?id={dead}")

    page.keyboard.press("?")
    page.get_by_label("Keyboard shortcuts on").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("j")

    expect(page.get_by_role("link", name=f"{dead}2")).not_to_be_focused()


def test_json_folds_and_stays_what_it_was(inbox, page):
    inbox.invoice("evt_1Sfolds", data={"object": {"customer": "cus_7", "amount": 1.5, "text": 'a"{b['}})
    page.goto("/admin/find?id=evt_1Sfolds")
    body = page.locator("#body")
    before = body.evaluate("pre => pre.textContent")

    page.get_by_role("button", name="Fold object").click()

    expect(page.locator("#body .nt", has_text="customer")).to_be_hidden()
    assert body.evaluate("pre => pre.textContent") == before
    assert '"customer": "cus_7",\n      "amount": 1.5,' in before
    page.get_by_role("button", name="Fold object").click()
    expect(page.locator("#body .s", has_text="cus_7")).to_be_visible()


def test_local_time_stands_beside_utc(inbox, window):
    inbox.invoice("evt_1Stime")
    page = window(timezone_id="Asia/Tokyo", locale="en-GB")

    page.goto("/admin/find?id=evt_1Stime")

    expect(page.locator("time.both").first).to_have_text(re.compile(r"UTC · .*here$"))
