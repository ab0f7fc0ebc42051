"""A list and the page of one of its events, side by side: opened, walked, left again, each under its own address."""

import itertools
import re

import pytest

NUMBERS = itertools.count(1)

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def listed(inbox):
    """Give how the ids of three events that are done begin, and their numbers, the newest first."""
    begin = f"evt_1Sbeside{next(NUMBERS)}_"
    for n in range(3):
        inbox.invoice(f"{begin}{n}")
    done = f"SELECT count(*) FROM hookonce.event_states WHERE status = 'done' AND event_id LIKE '{begin}%'"  # noqa: S608
    inbox.until(done, 3)
    rows = inbox.connection.execute(
        "SELECT id FROM hookonce.events WHERE starts_with(event_id, %s) ORDER BY id DESC", [begin]
    ).fetchall()
    return begin, [number for (number,) in rows]


def test_event_opens_beside_its_list_and_back_leads_back(page, listed):
    begin, numbers = listed
    page.goto(f"/admin/events?id={begin}")
    page.evaluate("window.stays = true")

    page.get_by_role("link", name=f"{begin}2").click()

    expect(page.locator("#pane h1")).to_contain_text("invoice.paid")
    expect(page.get_by_role("link", name=f"{begin}0")).to_be_visible()
    expect(page).to_have_url(re.compile(f"/admin/events/{numbers[0]}[?]id={begin}$"))
    page.get_by_role("link", name=f"{begin}0").click()
    expect(page.locator("#pane")).to_contain_text(f"stripe:{begin}0")
    page.go_back()
    expect(page.locator("#pane")).to_contain_text(f"stripe:{begin}2")
    page.go_back()
    expect(page.locator("#pane")).to_be_empty()
    expect(page).to_have_url(re.compile(f"/admin/events[?]id={begin}$"))
    assert page.evaluate("window.stays")


def test_keys_walk_the_list_while_an_event_is_open(page, listed):
    begin, numbers = listed
    page.goto(f"/admin/events?id={begin}")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#pane")).to_contain_text(f"stripe:{begin}2")

    page.keyboard.press("j")

    expect(page.locator("#pane")).to_contain_text(f"stripe:{begin}1")
    expect(page.locator("#found a[aria-current]")).to_have_text(f"{begin}1")
    expect(page).to_have_url(re.compile(f"/admin/events/{numbers[1]}"))
    page.keyboard.press("k")
    expect(page.locator("#pane")).to_contain_text(f"stripe:{begin}2")


def test_address_of_an_event_brings_its_list_along(page, listed):
    begin, numbers = listed

    page.goto(f"/admin/events/{numbers[1]}?id={begin}")

    expect(page.locator("#found a[aria-current]")).to_have_text(f"{begin}1")
    page.get_by_role("link", name="Back to list").click()
    expect(page.locator("#pane")).to_be_empty()


def test_json_folds_in_a_page_that_opened_beside_a_list(page, listed):
    begin, _ = listed
    page.goto(f"/admin/events?id={begin}")
    page.get_by_role("link", name=f"{begin}2").click()

    page.get_by_role("button", name="Fold data").click()

    expect(page.locator("#body .nt", has_text="amount_paid")).to_be_hidden()


@pytest.mark.parametrize("options", [{"width": 390}, {"java_script_enabled": False}])
def test_event_has_the_page_for_itself_without_room_or_scripts(window, listed, options):
    begin, _ = listed
    page = window(**options)
    page.goto(f"/admin/events?id={begin}")

    page.get_by_role("link", name=f"{begin}2").click()

    expect(page.locator("h1")).to_contain_text("invoice.paid")
    expect(page.locator("#found")).to_be_hidden()


def test_row_of_the_event_that_is_open_is_in_sight(window, listed):
    begin, numbers = listed
    page = window(height=240)

    page.goto(f"/admin/events/{numbers[2]}?id={begin}")

    row = page.get_by_role("row").filter(has_text=f"{begin}0")
    expect(row.get_by_role("link")).to_have_attribute("aria-current", "true")
    expect(row).to_be_in_viewport(ratio=0.9)
