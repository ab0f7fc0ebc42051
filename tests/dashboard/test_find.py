"""The field on top, several at once, and what the list says of how far it looked."""

import json
import re
from datetime import timedelta

import pytest

from hookonce.receiver.dashboard import events
from hookonce.receiver.ledger.queries import events as event_queries
from tests.support.outcomes import end_events

SHOWN = re.compile(r'id="event-(\d+)"')


def fill(inbox):
    body = json.dumps({"data": {"object": {"customer": "cus_1"}}}).encode()
    inbox.store("evt_1", account="acct_1", body=body)
    inbox.store("evt_2", type="charge.failed", body=b"{}")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("invoice.paid", [1]),
        ("invoice.*", [1]),
        ("type:charge.failed", [2]),
        ("acct_1", [1]),
        ("account:acct_1", [1]),
        ("stripe", [2, 1]),
        ("$.data.object.customer=cus_1", [1]),
        ("cus_1", [1]),
        ('"cus_1"', [1]),
        ("body:cus_1", [1]),
        ("cus_2", []),
        ("handler:shop.credit", [2]),
    ],
)
def test_field_finds_by_id_type_account_and_body(inbox, browser, typed, found):
    fill(inbox)
    inbox.die(2)

    answer = browser.client.get("/admin/find", query_string={"id": typed})

    assert [int(number) for number in SHOWN.findall(browser.get(answer.location).text)] == found


def test_path_that_is_none_is_told(browser):
    assert "is not a path" in browser.get("/admin/events?body=$x").text


def test_list_that_ends_early_says_how_far_back_and_goes_on(inbox, browser, monkeypatch):
    monkeypatch.setattr(event_queries, "NEWEST", 2)
    monkeypatch.setattr(events, "FIRST_LOOK", timedelta(0))
    inbox.store("evt_rare", type="rare")
    inbox.store(*(f"evt_{n}" for n in range(5)))

    page = browser.get("/admin/events?type=rare").text
    further = re.search('hx-get="([^"]+before=[^"]+)"', page)[1].replace("&amp;", "&")
    link = re.search('href="([^"]+)">continue', page)[1].replace("&amp;", "&")
    part = browser.get(further, **{"HX-Request": "true"}).text

    assert "Searched back to" in page
    assert SHOWN.findall(page) == []
    assert SHOWN.findall(part) == ["1"] == SHOWN.findall(browser.get(link).text)
    assert "<html" not in part


def test_pages_lead_back_to_newer_ones(inbox, browser):
    stored = inbox.store(*(f"evt_{n}" for n in range(2 * events.PAGE_SIZE + 10)))
    middle = browser.get(f"/admin/events?before={stored[55]}").text

    newer = re.search('href="([^"]+)" rel="prev"', middle)[1].replace("&amp;", "&")
    shown = [int(number) for number in SHOWN.findall(browser.get(newer).text)]

    assert shown == stored[55 : 55 + events.PAGE_SIZE][::-1]


def test_counts_stand_beside_the_statuses(inbox, browser):
    stored = inbox.store("evt_1", "evt_2", "evt_3")
    inbox.die(stored[0])
    inbox.store("gh_1", source="github")

    page = browser.get("/admin/events?source=stripe").text

    assert re.search(r'>Any status <span class="of">3<', page)
    assert re.search(r'>dead <span class="of">1<', page)
    assert not re.search(r'>dead <span class="of">', browser.get("/admin/events?type=x").text)


def test_rows_show_handler_and_error(inbox, browser):
    inbox.die(*inbox.store("evt_1"), error="ValueError: no <b>customer\nmore")

    page = browser.get("/admin/events").text

    assert '<span class="id">shop.credit</span>' in page
    assert '<span class="why">ValueError: no &lt;b&gt;customer</span>' in page


def test_handler_alone_finds_all_its_runs_and_with_dead_its_dead_ones(inbox, browser):
    dead, done = inbox.store("evt_1", "evt_2")
    inbox.die(dead)
    end_events(inbox.connection, "done", [done], handler="shop.credit")

    assert SHOWN.findall(browser.get("/admin/events?handler=shop.credit").text) == [str(done), str(dead)]
    assert SHOWN.findall(browser.get("/admin/events?handler=shop.credit&status=dead").text) == [str(dead)]


def test_view_has_the_name_that_its_address_says(browser):
    page = browser.get("/admin/events?view=Shop+orders&source=github").text

    assert "<h1>Shop orders</h1>" in page
    assert "<title>Shop orders" in page


def choose(browser, *numbers, **form):
    return browser.post("/admin/events/replay", event=[str(number) for number in numbers], **form)


def test_replay_of_nothing_chosen_says_what_to_do_above_the_same_list(browser):
    browser.get("/admin/events")

    answer = choose(browser, view="status=dead")

    assert answer.location.startswith("/admin/events?status=dead&")
    assert (
        "No event is selected, so none was replayed. Tick the events first"
        in browser.get(answer.location).text
    )


def test_chosen_events_are_replayed_and_the_list_is_shown_again(inbox, browser):
    stored = inbox.store("evt_1", "evt_2", "evt_3")
    for number in stored:
        inbox.die(number)
    browser.get("/admin/events")

    answer = choose(browser, *stored[:2], view="status=dead&source=stripe")
    page = browser.get(answer.location).text

    assert "Of the selected events: 2 replayed." in page
    assert answer.location.startswith("/admin/events?status=dead&source=stripe&")
    assert inbox.rows("SELECT status FROM hookonce.event_states ORDER BY id") == [
        ("waiting",),
        ("waiting",),
        ("dead",),
    ]


@pytest.mark.parametrize("chosen", [0, 1 << 70])
def test_choice_of_what_is_not_there_is_refused(inbox, browser, chosen):
    inbox.store("evt_1")
    browser.get("/admin/events")

    assert choose(browser, chosen).status_code == 404


def test_what_is_said_of_a_choice_is_only_what_we_say(browser):
    assert "hello" not in browser.get("/admin/events?said=3+hello").text
