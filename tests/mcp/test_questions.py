"""Twenty questions of an operator, answered by tool calls alone."""

import re

import pytest

from hookonce.receiver.desk.actions import ACTIONS
from tests.mcp.conftest import Agent, connected


def kinds(told):
    rows = enumerate(told.known["data"])
    return {(row["status"], told.said[f"data[{number}].type"]): row["count"] for number, row in rows}


def dead(ask, **wanted):
    return [event["id"] for event in ask("list_events", status="dead", **wanted).known["data"]]


QUESTIONS = {
    "how many events are dead": (
        lambda ask: ask("get_stats").known["dead"],
        5,
    ),
    "of what did they die, and how many of each": (
        lambda ask: [(g["handler"], g["count"]) for g in ask("list_dead_letters").known["data"]],
        [("shop.credit", 3), ("books.refund", 2)],
    ),
    "which error is it most often": (
        lambda ask: ask("list_dead_letters").said["data[0].example"],
        "ValueError: no such customer",
    ),
    "which events died of time": (
        lambda ask: dead(ask, error="TimeoutError*"),
        [10, 9],
    ),
    "which events of the handler shop.credit are dead": (
        lambda ask: dead(ask, handler="shop.credit"),
        [8, 7, 6],
    ),
    "how often was event 6 tried": (
        lambda ask: ask("get_event", event=6).known["runs"][0]["attempts"],
        10,
    ),
    "why does event 14 wait": (
        lambda ask: (
            ask("get_event", event=14).known["means"],
            ask("get_event", event=14).said["runs[0].error"],
        ),
        (
            "a run of it is to come: after a failure, at a time it asked for, or when a pause, limit or batch lets it",
            "KeyError: 'total'",
        ),
    ),
    "what does held mean, and which are": (
        lambda ask: (
            ask("explain_word", word="held").known["data"][0]["kind"],
            [e["id"] for e in ask("list_events", status="held").known["data"]],
        ),
        ("event status", [13]),
    ),
    "what did event 6 bring": (
        lambda ask: ask("get_event_body", event=6).said["body"],
        '{"id": "evt_6"}',
    ),
    "how many invoices were paid, by status": (
        lambda ask: kinds(ask("count_events", type="invoice.paid")),
        {("done", "invoice.paid"): 5, ("held", "invoice.paid"): 1, ("waiting", "invoice.paid"): 1},
    ),
    "which types does no handler take": (
        lambda ask: kinds(ask("count_events", status="ignored")),
        {("ignored", "customer.created"): 2},
    ),
    "who was refused, and why": (
        lambda ask: sorted({(r["source"], r["reason"]) for r in ask("list_rejected").known["data"]}),
        [("github", "stale"), ("stripe", "bad_signature")],
    ),
    "what is to be done about a bad signature": (
        lambda ask: "signing secret" in ask("list_rejected", reason="bad_signature").known["data"][0]["do"],
        True,
    ),
    "does stripe's secret need another look": (
        lambda ask: [s["slot"] for s in ask("get_source", source="stripe").known["secrets"]],
        [1, 2],
    ),
    "which source is silent": (
        lambda ask: [alert["subject"] for alert in ask("list_alerts", state="open").known["data"]],
        ["github"],
    ),
    "how many deliveries are missing": (
        lambda ask: ask("list_alerts", state="open").said["data[0].detail"],
        "at least 40 deliveries are missing",
    ),
    "what is paused, and by whom": (
        lambda ask: (
            [(each["kind"], each["name"], each["by"]) for each in ask("list_pauses").known["data"]],
            [c["who"] for c in ask("list_audit", action="pause").known["data"]][:1],
        ),
        ([("handler", "books.refund", "person")], ["ann"]),
    ),
    "did an id come with two bodies": (
        lambda ask: [row["event"] for row in ask("list_conflicts").known["data"]],
        [1],
    ),
    "what would a replay of events 6 and 13 do": (
        lambda ask: [
            (row["id"], row["fate"], row["handlers"])
            for row in ask("replay", events=["evt_13", 6]).known["plan"]["outcomes"]
        ],
        [(6, "replayed", ["shop.credit"]), (13, "released", [])],
    ),
    "how many would a replay of all that died of time run again": (
        lambda ask: ask("start_bulk_replay", filter={"status": "dead", "error": "TimeoutError*"}).known[
            "plan"
        ]["total"],
        2,
    ),
}


def test_there_are_twenty():
    assert len(QUESTIONS) == 20


@pytest.mark.parametrize("question", QUESTIONS)
def test_question_is_answered_by_tool_calls(question, agent):
    ask, answer = QUESTIONS[question]

    assert ask(agent.call) == answer


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


def test_questions_change_nothing(ledger):
    inbox, url = ledger
    agent = Agent(url, inbox.tokens["agent"])
    state = "SELECT id, status, due_at FROM hookonce.event_states ORDER BY id"
    runs = "SELECT event, handler, status, attempts, cycle FROM hookonce.run_states ORDER BY 1, 2"
    audit = "SELECT count(*) FROM hookonce.audit"
    before = [inbox.rows(query) for query in (state, runs, audit)]

    for ask, _ in QUESTIONS.values():
        ask(agent.call)

    assert [inbox.rows(query) for query in (state, runs, audit)] == before
