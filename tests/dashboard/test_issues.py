import pytest

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

    assert page.index("ValueError (mail.py:3)") < page.index("ValueError (shop/handlers.py:12)")
    assert 'data-label="dead">2<' in page
    assert 'data-label="release">v1<' in page


def test_whole_group_is_replayed_by_one_button(inbox, browser):
    die_of(inbox.connection, "a", "b")
    die_of(inbox.connection, "c", issue=OTHER)
    page = browser.get(f"/admin/issues/{ID}").text

    answer = browser.post("/admin/bulk", status="dead", issue=ID)

    assert "Replay 2 dead events" in page
    assert answer.status_code == 303
    assert inbox.rows("SELECT matched, replayed FROM hookonce.bulk_replays") == [(2, 2)]


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"state": "fixed"}, "fixed"),
        ({"state": "ignored", "for": "7d"}, "ignored"),
        ({"state": "open"}, "open"),
    ],
)
def test_issue_is_marked_and_listed_under_its_state(inbox, browser, said, state):
    die_of(inbox.connection, "a")
    browser.get(f"/admin/issues/{ID}")

    answer = browser.post(f"/admin/issues/{ID}", **said)

    assert (answer.status_code, state_of(inbox)) == (303, state)
    assert ID in browser.get(f"/admin/issues?state={state}").text


@pytest.mark.parametrize(
    "said", [{}, {"state": "solved"}, {"state": "ignored"}, {"state": "open", "for": "7d"}]
)
def test_mark_that_makes_no_sense_is_refused(inbox, browser, said):
    die_of(inbox.connection, "a")
    browser.get(f"/admin/issues/{ID}")

    assert browser.post(f"/admin/issues/{ID}", **said).status_code == 400
    assert state_of(inbox) == "open"


@pytest.mark.parametrize("path", ["/admin/issues/ffffffffffff", "/admin/issues/nonsense"])
def test_issue_that_is_not_there_is_told(browser, path):
    assert browser.get(path).status_code == 404


def test_issues_escape_what_errors_and_handlers_say(inbox, browser):
    die_of(inbox.connection, EVIL, handler=EVIL, place=EVIL, release=EVIL)

    for path in ("/admin/issues", f"/admin/issues/{ID}"):
        page = browser.get(path).text
        assert "<script>alert" not in page
        assert "<img" not in page
