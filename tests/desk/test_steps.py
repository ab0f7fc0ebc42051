import pytest

from tests.support.outcomes import put_into_state
from tests.support.steps import CHARGED, UNKNOWN, event_with_steps, left


@pytest.fixture
def event(here):
    return event_with_steps(here.connection, CHARGED, UNKNOWN)


def decide(here, event, decision, step="mail", **more):
    body = {"handler": "shop.pay", "step": step, "decision": decision} | more
    return here.ask("decide_step", event=event, **body, scope="replay")


def test_event_shows_its_steps_and_those_that_are_stopped_are_listed(here, event):
    shown = here.ask("get_event", event=event).json["steps"]

    assert [(step["name"], step["status"], step["result"]) for step in shown] == [
        ("charge", "done", {"id": "ch_1"}),
        ("mail", "stopped", None),
    ]
    assert here.ask("list_stopped_steps", scope="read+bodies").json == {"data": shown[1:]}


def test_step_is_decided_once(here, event):
    decided = decide(here, event, "done", result=7)
    again = decide(here, event, "done", result=8)

    assert (decided.kind, decided.json["data"][1]["status"]) == ("done", "done")
    assert decided.json["data"][1]["note"] == "by replay (token)"
    assert (again.kind, again.json["code"]) == ("Conflict", "step_done")


def test_step_is_forgotten(here, event):
    assert [step["name"] for step in decide(here, event, "forget").json["data"]] == ["charge"]
    assert decide(here, event, "forget").kind == "NotFound"


@pytest.mark.parametrize(("handlers", "kind"), [(("a",), "done"), (("a", "b"), "Contradictory")])
def test_handler_of_a_step_is_named_only_where_several_have_one_of_its_name(here, handlers, kind):
    event = event_with_steps(here.connection, UNKNOWN, handlers=handlers)

    assert decide(here, event, "forget", handler=None).kind == kind


def test_nobody_decides_about_a_run_that_is_under_way(here, event):
    put_into_state(here.connection, event, runs=[("shop.pay", "running", 2)])

    refused = decide(here, event, "forget")

    assert (refused.kind, refused.json["code"]) == ("Conflict", "run_under_way")
    assert len(left(here.connection)) == 2


def test_replay_forgets_the_steps_it_is_told_to(here, event):
    answer = here.ask("replay", events=[event], forget_steps=["charge"])

    assert answer.json["outcomes"][0]["forgotten"] == ["shop.pay/charge"]
    assert left(here.connection) == [("shop.pay", "mail", "failed_final")]


def test_replay_forgets_no_step_of_a_run_that_is_under_way(here, event):
    put_into_state(here.connection, event, runs=[("shop.pay", "running", 2)])

    here.ask("replay", events=[event], forget_steps=["charge"])

    assert len(left(here.connection)) == 2


def test_replay_keeps_what_steps_gave(here, event):
    here.ask("replay", events=[event])

    assert len(left(here.connection)) == 2
