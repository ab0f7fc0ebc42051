"""Tools, resources and prompts by question, each of which asks several actions of the desk."""

import re

import pytest

from hookonce.receiver.desk.actions import ACTIONS
from tests.mcp.conftest import connected


def test_body_is_a_resource_of_its_event(agent):
    assert agent.look("hookonce://events/evt_6/body").said == {"body": '{"id": "evt_6"}'}


def one(answer):
    return answer["data"][0]["name"] if "data" in answer else answer.get("id", answer.get("name"))


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"id": "evt_6"}, 6),
        ({"id": "6/shop.credit"}, 6),
        ({"id": "stripe"}, "stripe"),
        ({"id": "shop.credit"}, "shop.credit"),
        ({"id": 1, "kind": "rejection"}, 1),
    ],
)
def test_thing_is_shown_by_its_id(asked, shown, agent):
    assert one(agent.call("show", **asked).known) == shown


def test_failure_is_explained_with_what_differs(agent):
    told = agent.call("explain_failure", id="evt_6")

    assert told.said["event.runs[0].error"] == "ValueError: no such customer"
    assert set(told.known) == {"event", "diff"}


def test_newest_rejection_of_a_source_is_explained(agent):
    assert agent.call("explain_rejection", source="github").known["reason"] == "stale"


def test_what_waits_says_why(agent):
    told = agent.call("what_waits").known

    assert [pause["name"] for pause in told["pauses"]["data"]] == ["books.refund"]
    assert set(told) == {"handlers", "pauses", "workers", "stopped_steps"}


@pytest.mark.parametrize(
    ("prompt", "argument"),
    [("why_did_it_fail", "id"), ("replay_after_a_fix", "issue"), ("why_is_a_sender_rejected", "source")],
)
def test_prompt_of_a_job_names_tools_that_are_there(prompt, argument, agent):
    import asyncio  # noqa: PLC0415

    async def ask():
        async with connected(agent.server) as client:
            listed = await client.list_prompts()
            return listed, await client.get_prompt(prompt, {argument: "x-1"})

    listed, filled = asyncio.run(ask())

    named = set(re.findall(r"`([a-z_]+)`", filled.messages[0].content.text))
    assert prompt in {each.name for each in listed.prompts}
    assert "'x-1'" in filled.messages[0].content.text
    assert named <= {*agent.tools(), *ACTIONS, "dead"}


def test_what_a_handler_logged_is_told_as_words_of_others(agent):
    event = agent.call("get_event", event=6)

    assert event.said["logs[0].lines[0].text"] == "crediting"
    assert event.known["logs"][0]["lines"][0]["at"] == 3


def test_sources_are_resources(agent):
    every = [source["name"] for source in agent.look("hookonce://sources").known["data"]]

    assert "stripe" in every
    assert agent.look("hookonce://sources/stripe").known["provider"] == "stripe"
