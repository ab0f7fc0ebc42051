from datetime import UTC, datetime, timedelta

import pytest

from tests.support.issues import ID, die_of


@pytest.fixture
def dead(inbox):
    return die_of(inbox.connection, "a", "b")


def test_issue_is_marked_and_its_group_replayed(inbox, dead):
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat()

    ignored = inbox.ask("POST", f"/issues/{ID}", {"state": "ignored", "until": until}, scope="replay")
    listed = inbox.ask("GET", "/issues?state=ignored", scope="read").json
    begun = inbox.ask("POST", "/bulk-replays", {"filter": {"status": "dead", "issue": ID}}, scope="replay")

    assert (ignored.status_code, ignored.json["state"]) == (200, "ignored")
    assert [(each["id"], each["dead"]) for each in listed["data"]] == [(ID, len(dead))]
    assert (begun.status_code, begun.json["matched"]) == (201, len(dead))


@pytest.mark.parametrize(
    ("said", "scope", "status"),
    [
        ({"state": "fixed"}, "read", 403),
        ({"state": "ignored"}, "admin", 409),
        ({"state": "ignored", "until": "2h"}, "admin", 409),
        ({"state": "open", "until": "2999-01-01T00:00:00Z"}, "admin", 409),
        ({"state": "solved"}, "admin", 422),
    ],
)
@pytest.mark.usefixtures("dead")
def test_mark_that_makes_no_sense_is_refused(inbox, said, scope, status):
    assert inbox.ask("POST", f"/issues/{ID}", said, scope=scope).status_code == status


def test_issue_that_is_not_there_is_not_found(inbox):
    for method, body in (("GET", None), ("POST", {"state": "fixed"})):
        assert inbox.ask(method, f"/issues/{ID}", body).status_code == 404
