import re

import pytest

from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.stats import issues
from tests.dashboard.test_events import EVIL
from tests.support.issues import ID, die_of

OTHER = "0000aaaa1111"


def state_of(inbox, issue=ID):
    return issues.get(inbox.connection, issue).state


def test_nothing_fails_in_an_empty_inbox_and_says_where_to_go_on(browser):
    page = browser.get("/admin/issues").text

    assert "No issue is open." in page
    assert '<a href="/admin/sources">Send a test event</a>' in page


def test_issues_are_listed_by_their_last_failure(inbox, browser):
    die_of(inbox.connection, "a", "b")
    die_of(inbox.connection, "c", issue=OTHER, handler="mail", place="mail.py:3")

    page = browser.get("/admin/issues").text

    assert page.index(">ValueError in mail<") < page.index(">ValueError in shop.credit<")
    assert page.index("mail.py:3") < page.index("shop/handlers.py:12")
    assert 'data-label="dead">2<' in page
    assert 'data-label="events">2<' in page
    assert 'data-label="came with">v1<' in page


def test_issue_is_named_by_its_error_and_handler_and_no_page_by_a_hash(inbox, browser):
    die_of(inbox.connection, "a")
    alerts.raise_alert(
        inbox.connection, "new_issue", ID, f"ValueError is new; see `hookonce issues show {ID}`"
    )

    for path in ("/admin/issues", f"/admin/issues/{ID}", "/admin/alerts", "/admin/"):
        titles = re.findall(r"<(h1|h2|title)[ >](.*?)</\1>", browser.get(path).text, re.DOTALL)
        assert titles
        assert ID not in str(titles)


@pytest.mark.parametrize("path", ["/admin/issues", "/admin/alerts", "/admin/"])
@pytest.mark.parametrize(
    ("kind", "subject", "detail", "shown"),
    [
        (
            "source_silent",
            "stripe",
            "none for 2 h; expected one an hour; see `hookonce sources`",
            "none for 2 h",
        ),
        (
            "signature_failures",
            "stripe",
            "9 failed; see `hookonce rejected list`: is it the secret?",
            "9 failed",
        ),
        ("oldest_due", "", "due for 9 min; start `hookonce worker`, or more of them", "due for 9 min"),
        ("clock", "", "nothing is pruned: the clock of the host went back", "nothing is pruned"),
    ],
)
def test_alert_without_an_issue_has_a_button_where_a_command_was(
    inbox, browser, path, kind, subject, detail, shown
):
    alerts.raise_alert(inbox.connection, kind, subject, detail)

    article = re.search(r'<article class="notice is-bad">.*?</article>', browser.get(path).text, re.DOTALL)[0]

    assert shown in article
    assert "hookonce " not in article
    assert '<a class="button' in article


def test_alert_of_an_issue_is_not_repeated_beneath_the_issues(inbox, browser):
    die_of(inbox.connection, "a")
    alerts.raise_alert(inbox.connection, "new_issue", ID, "ValueError is new")

    assert "ValueError is new" not in browser.get("/admin/issues").text
    assert "ValueError is new" in browser.get("/admin/alerts").text


def test_trend_counts_the_failures_of_the_last_day_and_of_two_weeks(inbox, browser):
    die_of(inbox.connection, *"abcde")
    for age, event in (("3 hours", "a"), ("3 days", "b"), ("13 days", "c"), ("15 days", "d")):
        inbox.connection.execute(
            "UPDATE hookonce.failures SET failed_at = now() - %s::interval WHERE event = "
            "(SELECT id FROM hookonce.event_states WHERE event_id = %s)",
            [age, event],
        )

    for path in ("/admin/issues", f"/admin/issues/{ID}"):
        page = browser.get(path).text
        assert "2 failed attempts in the last 24 h, by 1 h" in page
        assert "4 failed attempts in the last 14 d, by 1 d" in page


def test_events_of_an_issue_are_a_row_each_with_the_attempts_inside(inbox, browser):
    first, second = die_of(inbox.connection, "a", "b")
    inbox.connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, issue) "
        "SELECT event, handler, cycle, n, error, issue FROM hookonce.failures, generate_series(2, 4) AS n "
        "WHERE event = %s",
        [second],
    )

    page = browser.get(f"/admin/issues/{ID}").text

    rows = re.findall(r'<tr data-row><th scope="row"><a class="id" href="/admin/events/(\d+)">', page)
    assert rows == [str(second), str(first)]
    assert "<summary>4 attempts</summary>" in page
    assert "<dt>Events affected</dt><dd>2</dd>" in page


@pytest.mark.parametrize("path", ["/admin/issues", f"/admin/issues/{ID}"])
def test_issue_has_its_buttons_on_both_pages(inbox, browser, path):
    die_of(inbox.connection, "a", "b")

    page = browser.get(path).text

    for button in ("Replay 2", "Fixed", "Discard", "Ignore"):
        assert re.search(rf"<(button|summary)[^>]*>{button}", page), button
    assert "hookonce issues" not in page


def test_dead_events_of_an_issue_are_discarded_by_a_button(inbox, browser):
    die_of(inbox.connection, "a", "b")
    kept = die_of(inbox.connection, "c", issue=OTHER)
    browser.get(f"/admin/issues/{ID}")

    answer = browser.post(f"/admin/issues/{ID}", discard="yes")

    assert (answer.status_code, state_of(inbox)) == (303, "open")
    assert inbox.rows("SELECT id FROM hookonce.event_states WHERE status = 'dead'") == [(kept[0],)]
    assert ">Discard<" not in browser.get(f"/admin/issues/{ID}").text


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"state": "fixed"}, "fixed"),
        ({"for": "7d"}, "ignored"),
        ({"state": "open"}, "open"),
    ],
)
def test_issue_is_marked_and_listed_under_its_state(inbox, browser, said, state):
    die_of(inbox.connection, "a")
    browser.get(f"/admin/issues/{ID}")

    answer = browser.post(f"/admin/issues/{ID}", **said)

    assert (answer.status_code, state_of(inbox)) == (303, state)
    assert ID in browser.get(f"/admin/issues?state={state}").text


@pytest.mark.parametrize("said", [{}, {"state": "solved"}, {"state": "ignored"}, {"for": "9d"}])
def test_mark_that_makes_no_sense_is_refused(inbox, browser, said):
    die_of(inbox.connection, "a")
    browser.get(f"/admin/issues/{ID}")

    assert browser.post(f"/admin/issues/{ID}", **said).status_code == 400
    assert state_of(inbox) == "open"


def test_issues_escape_what_errors_and_handlers_say(inbox, browser):
    die_of(inbox.connection, EVIL, handler=EVIL, place=EVIL, release=EVIL)

    for path in ("/admin/issues", f"/admin/issues/{ID}"):
        page = browser.get(path).text
        assert "<script>alert" not in page
        assert "<img" not in page
