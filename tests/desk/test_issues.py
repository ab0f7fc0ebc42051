from datetime import UTC, datetime, timedelta

import pytest

from tests.support.issues import ID, die_of


@pytest.fixture
def dead(here):
    return die_of(here.connection, "a", "b")


def test_issue_is_marked_and_its_group_replayed(here, dead):
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat()

    ignored = here.ask("mark_issue", issue=ID, state="ignored", until=until, scope="replay")
    listed = here.ask("list_issues", state="ignored", scope="read").json
    begun = here.ask("start_bulk_replay", filter={"status": "dead", "issue": ID}, scope="replay")

    assert (ignored.kind, ignored.json["state"]) == ("done", "ignored")
    assert [(each["id"], each["dead"]) for each in listed["data"]] == [(ID, len(dead))]
    assert (begun.kind, begun.json["matched"]) == ("done", len(dead))


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"state": "ignored"}, "Contradictory"),
        ({"state": "ignored", "until": "2h"}, "Contradictory"),
        ({"state": "open", "until": "2999-01-01T00:00:00Z"}, "Conflict"),
        ({"state": "solved"}, "Invalid"),
    ],
)
@pytest.mark.usefixtures("dead")
def test_mark_that_makes_no_sense_is_refused(here, said, status):
    assert here.ask("mark_issue", issue=ID, **said).kind == status
