"""Followed events come once, and once more with each change of status, also those that were committed late."""

import json
from datetime import timedelta

import pytest

from hookonce.receiver.api.request_reader import MAX_BODY
from hookonce.receiver.desk.feeds import following
from hookonce.receiver.desk.models import MAX_ID
from hookonce.receiver.ledger.states import EventStatus
from tests.support.outcomes import put_into_state


def position(told):
    return {name: told.json[name] for name in ("after", "seen")}


def statuses(told):
    return [(row["event_id"], row["status"]) for row in told.json["data"]]


def test_each_event_comes_once_and_again_with_another_status(here):
    here.deliver("evt_0")
    begun = here.ask("follow_events", last=5)
    number = here.deliver("evt_1")[0]
    first = here.ask("follow_events", **position(begun))
    second = here.ask("follow_events", **position(first))
    put_into_state(here.connection, number, "done")
    third = here.ask("follow_events", **position(second))

    assert [statuses(each) for each in (begun, first, second, third)] == [
        [("evt_0", "received")],
        [("evt_1", "received")],
        [],
        [("evt_1", "done")],
    ]


def test_event_that_was_committed_after_one_with_a_higher_id_comes_still(here):
    begun = here.ask("follow_events")
    late = here.deliver("evt_0")[0]
    here.deliver("evt_1")
    here.connection.execute("CREATE TABLE late AS TABLE hookonce.events")
    here.connection.execute("DELETE FROM hookonce.events WHERE id = %s", [late])

    first = here.ask("follow_events", **position(begun))
    here.connection.execute(
        "INSERT INTO hookonce.events OVERRIDING SYSTEM VALUE SELECT * FROM late WHERE id = %s", [late]
    )
    second = here.ask("follow_events", **position(first))

    assert (statuses(first), statuses(second)) == ([("evt_1", "received")], [("evt_0", "received")])


def test_status_is_the_one_that_an_event_takes_on(here):
    begun = here.ask("follow_events", status="dead", source="stripe")
    number = here.deliver("evt_1")[0]
    first = here.ask("follow_events", status="dead", source="stripe", **position(begun))
    put_into_state(here.connection, number, "dead")
    second = here.ask("follow_events", status="dead", source="stripe", **position(first))

    assert (statuses(first), statuses(second)) == ([], [("evt_1", "dead")])


def test_what_has_ended_long_ago_is_not_followed_and_does_not_come_again(here, monkeypatch):
    begun = here.ask("follow_events")
    number = here.deliver("evt_1")[0]
    put_into_state(here.connection, number, "done")
    monkeypatch.setattr(following, "SETTLED_AFTER", timedelta(0))

    first = here.ask("follow_events", **position(begun))

    assert position(first) == {"after": number, "seen": []}
    assert here.ask("follow_events", **position(first)).json["data"] == []


def test_more_than_are_followed_are_let_go_of_the_oldest_first(here, monkeypatch):
    monkeypatch.setattr(following, "MAX_SEEN", 2)
    begun = here.ask("follow_events")
    numbers = [here.deliver(f"evt_{n}")[0] for n in range(4)]

    first = here.ask("follow_events", **position(begun))

    assert first.json["after"] == numbers[1]
    assert [each["event"] for each in first.json["seen"]] == numbers[2:]
    assert here.ask("follow_events", **position(first)).json["data"] == []


def test_all_that_is_followed_fits_into_a_request_of_the_api():
    longest = max(EventStatus, key=len)
    seen = [{"event": MAX_ID, "status": longest}] * following.MAX_SEEN
    asked = following.FollowRequest(after=MAX_ID, seen=seen).model_dump(mode="json", exclude_none=True)

    assert len(json.dumps(asked)) <= MAX_BODY


@pytest.mark.parametrize("asked", [{"seen": [{"event": 0, "status": "done"}]}, {"after": -1}, {"last": 1001}])
def test_position_that_no_answer_gave_is_refused(here, asked):
    assert here.ask("follow_events", **asked).kind == "Invalid"
