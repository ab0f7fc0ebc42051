"""What the dashboard shows of workers, and of what holds handlers up."""

import re
from datetime import timedelta

import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.stats import worker_slots
from tests.support import desk
from tests.support.waiting import until

ODD = "shop.<b>credit</b>"
SAFE = "shop.&lt;b&gt;credit&lt;/b&gt;"


def tile(browser):
    """The tile of slots on the overview: whether it is bad, and what it says."""
    found = re.search(
        r'<div class="tile( is-bad)?"><span class="label">Slots in use</span><strong>([^<]*)</strong>'
        r'<span class="more">([^<]*)</span>',
        browser.get("/admin/").text,
    )
    return found and (bool(found[1]), found[2], found[3])


def held_up(browser):
    """What the page of handlers says in the column *waits for*, by handler, with its markup."""
    page = browser.get("/admin/handlers").text
    rows = re.findall(r"<tr>\s*<th scope=.*?</tr>", page, re.DOTALL)
    return {
        re.search(r'handler=[^"]*">([^<]*)</a>', row)[1]: re.findall(
            r"<p>(.*?)</p>", row.split('data-label="waits for">')[1].split("</td>")[0]
        )
        for row in rows
    }


@pytest.mark.parametrize(
    ("reports", "shown"),
    [
        ([(1, 1, 0)], None),
        ([(4, 1, 0)], (False, "1 of 4", "in 1 worker")),
        ([(4, 1, 0), (16, 9, 0)], (False, "10 of 20", "in 2 workers")),
        ([(16, 9, 2)], (True, "9 of 16", "2 lost to handlers that do not stop")),
    ],
)
def test_overview_sums_the_slots_of_workers_that_have_several(inbox, browser, reports, shown):
    for number, (slots, busy, lost) in enumerate(reports):
        desk.report(inbox.connection, name=f"host:{number}", slots=slots, busy=busy, lost=lost)

    assert tile(browser) == shown


def test_handler_that_nothing_holds_up_says_nothing(inbox, browser):
    register_handlers(inbox.connection, [(ODD, "stripe", "*", 3, timedelta(seconds=30), None)])

    assert held_up(browser) == {SAFE: []}


def test_suspects_of_a_handler_are_counted(inbox, browser):
    desk.suspects(inbox.connection, ODD, 2)

    assert held_up(browser) == {SAFE: ["2 were running when a process died; each is retried alone."]}


def test_transaction_that_wrote_and_waits_is_named_the_longest_of_its_handler(inbox, browser, monkeypatch):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    url = inbox.settings.database_url
    with desk.waiting(url) as first, desk.waiting(url) as second, desk.waiting(url, writes=False) as reader:
        desk.report(inbox.connection, (ODD, 8, second), (ODD, 7, first), ("shop.mail", 9, reader))
        until(lambda: len(worker_slots.long_transactions(inbox.connection)), 2)

        said = held_up(browser)

    assert said.keys() == {SAFE}
    (text,) = said[SAFE]
    assert re.match(r"Its transaction has been open for \d[\d.]* m?s after writing \(event 7\)", text)
    assert '<code>tx="none"</code>' in text


def test_runs_that_wait_for_a_limit_or_a_rate_are_told(inbox, browser):
    desk.wait_for_place(inbox.connection, ODD, 2)
    desk.wait_for_rate(inbox.connection, "shop.sms", 5)

    said = held_up(browser)

    assert said[SAFE] == ["2 wait for its concurrency limit."]
    assert re.fullmatch(r"New events wait (2\d|30) s for its rate limit\.", said["shop.sms"][0])


@pytest.mark.parametrize(
    ("count", "begins"),
    [
        (4, "4 failures in a row: "),
        (5, '<span class="error">Stopped by its circuit breaker</span> after 5 failures in a row'),
    ],
)
def test_breaker_is_said_to_be_open_from_its_limit_on(inbox, browser, count, begins):
    desk.fail_in_a_row(inbox.connection, ODD, count, limit=5, error="Odd<script>Error")

    (text,) = held_up(browser)[SAFE]

    assert text.startswith(begins)
    assert (", now; 0 events wait, one is tried <time" in re.sub(r"<time[^>]*>now</time>", "now", text)) == (
        count == 5
    )
    assert "Odd&lt;script&gt;Error" in text
    assert "<script>" not in text


def row_of(browser, handler):
    page = browser.get("/admin/handlers").text
    (row,) = [each for each in re.findall(r"<tr>\s*<th scope=.*?</tr>", page, re.DOTALL) if handler in each]
    return row


def test_stopped_handler_can_be_resumed_or_its_pause_made_a_persons(inbox, browser):
    desk.stop(inbox.connection, "shop.credit", 2)
    stopped = row_of(browser, "shop.credit")

    browser.post("/admin/pause", kind="handler", name="shop.credit")
    paused = row_of(browser, "shop.credit")

    assert re.findall(r">(Resume|Pause)<", stopped) == ["Resume", "Pause"]
    assert 'class="status is-stopped"' in stopped
    assert re.search(r"2 events wait, the oldest came 1 min [345]\d s ago", stopped)
    assert re.findall(r">(Resume|Pause)<", paused) == ["Resume"]
    assert 'class="status is-paused"' in paused


def test_handler_is_shown_with_what_it_is_held_to(inbox, browser):
    register_handlers(
        inbox.connection,
        [(ODD, "stripe", "*", 3, timedelta(seconds=30), None)],
        {ODD: '{"limits": {"rate": "100/m", "tx": "none"}}'},
    )

    assert '<span class="more">100/m, tx=&#34;none&#34;</span>' in row_of(browser, SAFE)


def test_overview_tells_what_breakers_hold_from_what_a_person_has_paused(inbox, browser):
    desk.stop(inbox.connection, ODD, 2)
    pauses.pause(inbox.connection, "handler", "shop.mail", "ann")

    page = browser.get("/admin/").text

    assert re.search(
        r'Stopped by breakers</span><strong>2</strong><span class="more">the oldest came 1 min 3', page
    )
    assert f"Stopped by its circuit breaker: handler <b>{SAFE}</b>" in page
    assert "Paused: handler <b>shop.mail</b>." in page


def test_batches_are_told_with_what_is_left_of_those_that_failed(inbox, browser):
    desk.halve(inbox.settings, inbox.connection, ODD, "no such place")

    (text,) = held_up(browser)[SAFE]

    assert text.startswith(
        "3 events in 1 batches, halved 1 times. One failed: its parts are retried separately, 2 left, the next "
        'has 4 events: <span class="keep">ValueError'
    )
