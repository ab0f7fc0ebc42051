import re
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.dashboard.event_form import read_event_form
from hookonce.receiver.dashboard.events import PAGE_SIZE
from tests.support.outcomes import lose_events

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
EVIL = "\"><script>alert('x')</script><img src=x onerror=alert(1)>{{7*7}}\u202e\x1b[2J"
SHOWN_IDS = re.compile(r'class="id" id="event-(\d+)"')


def shown(page):
    return [int(number) for number in SHOWN_IDS.findall(page.text)]


def test_list_of_an_empty_ledger_says_how_to_fill_it(browser):
    assert "No events yet" in browser.get("/admin/events").text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [3, 2, 1]),
        ("source=github&type=push", [3]),
        ("id=evt_&status=dead", [2]),
        ("since=0001-01-01T00:00%2B14:00&until=9999-12-31T23:59-14:00", [3, 2, 1]),
        ("until=1h", []),
        ("since=2020-01-01&until=2020-01-02T10:00", []),
        ("source=stripe%00", [2, 1]),
    ],
)
def test_list_shows_what_the_fields_of_its_form_say(inbox, browser, query, found):
    inbox.store("evt_1")
    inbox.die(*inbox.store("evt_2"))
    inbox.store("gh_3", source="github", type="push")

    assert shown(browser.get(f"/admin/events?{query}")) == found


def test_list_is_read_page_by_page_without_gap_or_repeat(inbox, browser):
    stored = inbox.store(*(f"evt_{n}" for n in range(2 * PAGE_SIZE + 3)), type="a&b")
    pages, path = [], "/admin/events?type=a%26b"

    while path:
        page = browser.get(path)
        pages.append(shown(page))
        older = re.search('href="([^"]+)" rel="next"', page.text)
        path = older and older[1].replace("&amp;", "&")

    assert [len(page) for page in pages] == [PAGE_SIZE, PAGE_SIZE, 3]
    assert [number for page in pages for number in page] == stored[::-1]


@pytest.mark.parametrize(
    ("query", "told"), [("since=often", "is not a time"), ("status=gone", "no status is called")]
)
def test_list_tells_what_is_wrong_with_a_filter(browser, query, told):
    assert told in browser.get(f"/admin/events?{query}").text


def poll(browser):
    return re.search('hx-get="([^"]+)"', browser.get("/admin/events").text)[1].replace("&amp;", "&")


def live(browser, path):
    return browser.get(path, **{"HX-Request": "true"})


def test_first_page_refreshes_and_marks_what_is_new(inbox, browser):
    inbox.store("evt_1")
    unchanged = {live(browser, poll(browser)).status_code for _ in range(2)}  # a minute may end during one
    before = poll(browser)

    inbox.store("evt_2")
    page = live(browser, before)

    assert 204 in unchanged
    assert shown(page) == [2, 1]
    assert page.text.count('class="is-new"') == 1
    assert "<html" not in page.text


def test_later_page_does_not_refresh(inbox, browser):
    inbox.store("evt_1", "evt_2")

    assert "hx-get" not in browser.get("/admin/events?before=2").text


@pytest.mark.parametrize(
    ("said", "location"),
    [
        ("1", "/admin/events/1"),
        ("evt_one", "/admin/events/1"),
        ("stripe:evt_one", "/admin/events/1"),
        ("evt_o", "/admin/events/1"),
        ("evt_", "/admin/events?id=evt_"),
        ("stripe:evt_", "/admin/events?source=stripe&id=evt_"),
        ("none", "/admin/events?body=none"),
        ("9" * 40, f"/admin/events?body={'9' * 40}"),
        ("", "/admin/events"),
    ],
)
def test_search_goes_to_the_event_or_to_a_list(inbox, browser, said, location):
    inbox.store("evt_one", "evt_two")

    assert browser.get(f"/admin/find?id={said}").location == location


def test_list_escapes_whatever_a_sender_wrote(inbox, browser):
    inbox.store(EVIL, type=EVIL, account=EVIL)

    page = browser.get("/admin/events").text

    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "{{7*7}}" in page


def test_filter_escapes_what_was_typed(browser):
    page = browser.client.get("/admin/events", query_string={"type": EVIL})

    assert "<script>alert" not in page.text


def test_times_of_a_filter_are_utc():
    form = read_event_form({"since": "2026-01-31T10:00", "until": "90m"}, NOW)

    assert form.wanted.since == NOW - timedelta(hours=2)
    assert form.wanted.until == NOW - timedelta(minutes=90)


def test_lost_event_is_listed_and_says_what_to_do(inbox, browser):
    lost, _ = inbox.store("evt_1", "evt_2")
    lose_events(inbox.connection, [lost])

    listed = browser.get("/admin/events?status=lost").text
    page = browser.get(f"/admin/events/{lost}").text

    assert SHOWN_IDS.findall(listed) == [str(lost)]
    assert 'class="status is-lost"' in listed
    assert f"only the event is left, without a run; `hookonce replay {lost}` gives it one" in page
