"""Every page: on a phone, in the dark, by keyboard, and with a sender who writes markup wherever one can."""

import json

import pytest

from hookonce.receiver.dev.stack import session as http
from tests.support.for_each import for_each

PAGES = (
    "/",
    "/events",
    "/issues",
    "/issues?state=all",
    "/alerts",
    "/stopped-steps",
    "/commands",
    "/bulk",
    "/bulk/new?status=dead",
    "/rejected",
    "/sources",
    "/sources/stripe",
    "/handlers",
    "/limits",
    "/audit",
)
EVIL = "\"'><script>xssed('script')</script><img src=x onerror=xssed('img')><svg onload=xssed('svg')>{{7*7}}"

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def attacked(inbox):
    """Put markup wherever a sender can write; gives the paths of the events."""
    for kind in ("evil", "odd"):
        body = {"id": f"evt_{kind}{EVIL}", "type": f"{kind}{EVIL}", "account": EVIL, "text": EVIL, EVIL: EVIL}
        assert inbox.deliver(body, headers={"x-evil": EVIL, "user-agent": EVIL}).status_code == 200
        assert inbox.deliver({**body, "text": EVIL + "2"}).status_code == 200  # a conflict
    with http() as client:
        for path in ("stripe", "no-such-source<script>alert(1)</script>"):
            headers = {"stripe-signature": f"t=1,v1={EVIL}", "x-evil": EVIL}
            assert (
                client.post(f"{inbox.url}/hooks/{path}", data=EVIL, headers=headers, timeout=10).status_code
                >= 400
            )
    inbox.until(
        "SELECT count(*) FROM hookonce.runs WHERE handler IN ('shop.evil', 'shop.odd') AND is_last",
        2,
    )
    inbox.until("SELECT count(*) > 0 FROM hookonce.rejected", expected=True)
    numbers = inbox.connection.execute(
        "SELECT id FROM hookonce.event_states WHERE event_id LIKE '%script%'"
    ).fetchall()
    refused = inbox.connection.execute("SELECT id FROM hookonce.rejected").fetchall()
    failing = inbox.connection.execute(
        "SELECT id FROM hookonce.issues WHERE handler = 'shop.evil'"
    ).fetchall()
    return [
        *(f"/events/{row[0]}" for row in numbers),
        *(f"/issues/{row[0]}" for row in failing),
        *(f"/rejected/{row[0]}" for row in refused),
    ]


def test_markup_of_a_sender_stays_text_on_every_page(attacked, page):
    page.add_init_script("window.xssed = (where) => alert(where)")

    for path in (*PAGES, "/?span=24h", *attacked):
        page.goto(f"/admin{path}")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.locator("main script, main img, main svg[onload]").count() == 0

    assert page.title().startswith("Rejected")
    page.goto("/admin/events?type=" + json.dumps(EVIL))
    assert len(attacked) >= 4


def test_pages_are_dark_where_that_is_wished(window, picture):
    page = window(color_scheme="dark")

    page.goto("/admin/?span=24h")

    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(17, 17, 15)"
    picture(page, "overview-dark")


@for_each(["overview", "rejected", "handlers", "sources", "sources/stripe"])
def test_page_is_pictured_for_the_documents(name, page, picture):
    page.goto(f"/admin/{'?span=24h' if name == 'overview' else name}")

    heading = name.rpartition("/")[2] if "/" in name else name.capitalize()
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    picture(page, name.replace("sources/stripe", "source"))


def test_keyboard_reaches_the_content_first_and_sees_where_it_is(page):
    page.goto("/admin/sources")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_first_event_is_three_tabs_away(inbox, page):
    inbox.invoice("evt_1Stabs")
    page.goto("/admin/events")

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")

    expect(page.get_by_role("link", name="evt_1Stabs")).to_be_focused()


def test_tabs_of_a_phone_stand_in_one_row(window, picture):
    page = window(width=390, height=800)

    page.goto("/admin/?span=24h")
    picture(page, "overview-phone")

    tops = page.locator("nav[aria-label=Pages] a").evaluate_all("all => all.map((e) => e.offsetTop)")
    assert len(tops) == 6
    assert len(set(tops)) == 1
