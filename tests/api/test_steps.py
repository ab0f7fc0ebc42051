import pytest

from tests.cli.test_steps import CHARGED, UNKNOWN, event_with_steps, left
from tests.support.outcomes import put_into_state


@pytest.fixture
def event(inbox):
    return event_with_steps(inbox.connection, CHARGED, UNKNOWN)


def decide(inbox, event, decision, step="mail", **more):
    body = {"handler": "shop.pay", "step": step, "decision": decision} | more
    return inbox.ask("POST", f"/events/{event}/steps", body, scope="replay")


def test_event_shows_its_steps_and_those_that_are_stopped_are_listed(inbox, event):
    shown = inbox.ask("GET", f"/events/{event}").json["steps"]

    assert [(step["name"], step["status"], step["result"]) for step in shown] == [
        ("charge", "done", {"id": "ch_1"}),
        ("mail", "stopped", None),
    ]
    assert inbox.ask("GET", "/stopped-steps", scope="read+bodies").json == {"data": shown[1:]}


def test_step_is_decided_once(inbox, event):
    decided = decide(inbox, event, "done", result=7)
    again = decide(inbox, event, "done", result=8)

    assert (decided.status_code, decided.json["data"][1]["status"]) == (200, "done")
    assert decided.json["data"][1]["note"] == "by replay (token)"
    assert (again.status_code, again.json["code"]) == (409, "step_done")


def test_step_is_forgotten(inbox, event):
    assert [step["name"] for step in decide(inbox, event, "forget").json["data"]] == ["charge"]
    assert decide(inbox, event, "forget").status_code == 404


def test_nobody_decides_about_a_run_that_is_under_way(inbox, event):
    put_into_state(inbox.connection, event, runs=[("shop.pay", "running", 2)])

    refused = decide(inbox, event, "forget")

    assert (refused.status_code, refused.json["code"]) == (409, "run_under_way")
    assert len(left(inbox.connection)) == 2


def test_replay_forgets_the_steps_it_is_told_to(inbox, event):
    answer = inbox.ask("POST", "/replays", {"events": [event], "forget_steps": ["charge"]})

    assert answer.json["outcomes"][0]["forgotten"] == ["shop.pay/charge"]
    assert left(inbox.connection) == [("shop.pay", "mail", "failed_final")]
