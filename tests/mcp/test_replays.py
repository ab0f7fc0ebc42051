import base64

import pytest

from hookonce.receiver.api.mcp import confirmations
from hookonce.receiver.desk.actions import ACTIONS
from tests.mcp.conftest import Agent


@pytest.fixture
def own(ledgers):
    """An inbox of the test's own, and an agent that may replay."""
    inbox, url = ledgers()
    return inbox, Agent(url, inbox.tokens["agent"])


def cycles(inbox, event):
    return inbox.rows("SELECT cycle, status FROM hookonce.run_states WHERE event = %s", event)


def test_replay_does_what_was_planned_and_once(own):
    inbox, agent = own
    plan = agent.plan("replay", events=["evt_6"])
    assert cycles(inbox, 6) == [(1, "dead")]

    first = agent.call("confirm", confirmation=plan)
    again = agent.call("confirm", confirmation=plan)

    assert first.known == again.known
    assert first.known["outcomes"][0]["fate"] == "replayed"
    assert cycles(inbox, 6) == [(2, "waiting")]
    assert inbox.rows("SELECT who FROM hookonce.audit WHERE subject = 'event 6'") == [("agent (token)",)]


def test_confirmation_that_is_spelled_in_another_way_is_the_same(own):
    inbox, agent = own
    plan = next(
        each for each in (agent.plan("replay", events=[6]) for _ in range(50)) if {"-", "_"} & {*each}
    )

    first = agent.call("confirm", confirmation=plan)
    again = agent.call("confirm", confirmation=plan.replace("-", "+").replace("_", "/"))

    assert first.known == again.known
    assert cycles(inbox, 6) == [(2, "waiting")]


def test_what_could_only_be_refused_is_not_planned(agent):
    refusal = agent.refusal("replay", events=["evt_none", 999])

    assert "not in the ledger: evt_none, 999" in refusal


def test_plan_of_another_server_or_one_that_was_changed_is_refused(own):
    _, agent = own
    confirmation = agent.plan("replay", events=[6])
    raw = bytearray(base64.urlsafe_b64decode(confirmation))
    raw[-40] ^= 1
    changed = base64.urlsafe_b64encode(raw).decode()

    assert "make a plan first" in agent.refusal("confirm", confirmation=changed)
    assert "make a plan first" in Agent(agent.url, agent.token).refusal("confirm", confirmation=confirmation)


def test_plan_is_good_for_a_while(own, monkeypatch):
    _, agent = own
    confirmation = agent.plan("replay", events=[6])
    now = confirmations.time.time()
    monkeypatch.setattr(confirmations.time, "time", lambda: now + confirmations.LASTS.total_seconds() + 1)

    assert "too old" in agent.refusal("confirm", confirmation=confirmation)


def test_token_that_only_reads_plans_nothing(ledger):
    inbox, url = ledger

    refusal = Agent(url, inbox.tokens["read"]).refusal("replay", events=[6])

    assert "lacks the scope replay" in refusal


def test_read_only_server_has_no_tool_that_changes_something(ledger):
    inbox, url = ledger
    every = set(Agent(url, inbox.tokens["agent"]).tools())
    looking = Agent(url, inbox.tokens["agent"], read_only=True)

    assert "started with --read-only" in looking.refusal("replay", events=[6])
    assert every - set(looking.tools()) == {"plan", "confirm"}


def test_only_confirm_says_that_it_changes_something(agent):
    tools = agent.tools()

    assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["confirm"]
    assert all(tool.description for tool in tools.values())


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_every_action_is_reached_by_its_name_and_says_its_arguments(action, ledger):
    inbox, url = ledger
    way = "plan" if ACTIONS[action].changes else "ask"
    if not ACTIONS[action].inputs:
        return
    agent = Agent(url, inbox.tokens["agent"])

    told = agent.call(way, action=action).known
    other = agent.refusal("ask" if way == "plan" else "plan", action=action)

    fields = {name for model in ACTIONS[action].inputs.values() for name in model.model_fields}
    assert set(told["arguments"]["properties"]) == fields
    assert f"`{way}`" in other
    assert action in agent.call(way, action="").known["actions"]


@pytest.mark.parametrize("action", ["list_waits", "list_audit", "list_conflicts"])
def test_question_without_a_needed_argument_is_answered_at_once(action, ledger):
    inbox, url = ledger
    agent = Agent(url, inbox.tokens["agent"])

    told = agent.call("ask", action=action).known

    assert {"data", "arguments"} <= told.keys()


def test_question_that_its_token_may_not_ask_is_refused_without_arguments_too(ledger):
    inbox, url = ledger

    assert "lacks the scope read" in Agent(url, inbox.tokens["replay"]).refusal("ask", action="list_audit")
