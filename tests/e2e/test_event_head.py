"""The head of an event's page and the rows of a list, on a desk and on a phone."""

import pytest

from tests.support.for_each import for_each

HEIGHT = 800


@pytest.fixture
def number(inbox):
    for n in range(6):
        inbox.invoice(f"evt_1Shead{n}")
    return inbox.connection.execute(
        "SELECT id FROM hookonce.event_states WHERE event_id = 'evt_1Shead0'"
    ).fetchone()[0]


def bottom(locator):
    box = locator.bounding_box()
    return box["y"] + box["height"]


@for_each([1280, 390])
def test_edit_and_send_is_one_click_without_scrolling(width, window, number):
    page = window(width=width, height=HEIGHT)
    page.goto(f"/admin/events/{number}")
    edit = page.get_by_role("link", name="Edit and send")

    assert bottom(edit) < HEIGHT
    edit.click()

    page.wait_for_url(f"**/events/{number}/edit*")


@for_each([1280, 390])
def test_menu_of_an_event_is_in_sight_and_opens_what_it_names(width, window, number):
    page = window(width=width, height=HEIGHT)
    page.goto(f"/admin/events/{number}")

    page.locator(".event-head").get_by_text("More", exact=True).click()
    items = page.locator(".event-head .menu > div > *").all()
    boxes = [each.bounding_box() for each in items]
    page.get_by_role("link", name="Send elsewhere").click()

    assert len(boxes) == 5
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert page.locator("#send-to").is_visible()


@pytest.mark.usefixtures("number")
def test_five_events_fit_the_screen_of_a_phone(window):
    page = window(width=390, height=HEIGHT)

    page.goto("/admin/events")

    assert bottom(page.locator("tr[data-row]").nth(4)) <= HEIGHT
