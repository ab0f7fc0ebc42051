import base64

import pytest

from tests.mcp.conftest import Agent
from tests.support.outcomes import end_events


@pytest.fixture
def own(ledgers):
    """An inbox of the test's own, and an agent that may replay."""
    inbox, url = ledgers()
    return inbox, Agent(url, inbox.tokens["agent"])


def cycles(inbox, event):
    return inbox.rows("SELECT cycle, status FROM hookonce.run_states WHERE event = %s", event)


def test_replay_does_what_was_planned_and_once(own):
    inbox, agent = own
    plan = agent.call("plan_replay", events=[6])
    assert cycles(inbox, 6) == [(1, "dead")]

    first = agent.call("replay", confirmation=plan.known["confirmation"])
    again = agent.call("replay", confirmation=plan.known["confirmation"])

    assert first.known == again.known
    assert first.known["outcomes"][0]["fate"] == "replayed"
    assert cycles(inbox, 6) == [(2, "waiting")]
    assert inbox.rows("SELECT who FROM hookonce.audit WHERE subject = 'event 6'") == [("agent (token)",)]


def test_what_is_done_is_planned_and_run_again_only_if_one_says_so(own):
    inbox, agent = own
    (event,) = inbox.deliver("once")
    end_events(inbox.connection, "done", [event], handler="shop.credit")

    plan = agent.call("plan_replay", events=[event])
    refusal = agent.refusal("replay", confirmation=plan.known["confirmation"])
    again = agent.call("plan_replay", events=[event], again=True)
    outcome = agent.call("replay", confirmation=again.known["confirmation"]).known["outcomes"][0]

    assert plan.known["plan"]["outcomes"][0]["fate"] == "already_done"
    assert "already done" in refusal
    assert (outcome["fate"], cycles(inbox, event)) == ("replayed", [(2, "waiting")])


def test_bulk_replay_takes_what_was_there_when_it_was_planned(own):
    inbox, agent = own
    plan = agent.call("plan_bulk_replay", status="dead", handler="shop.credit", since="1h", rate=5)
    (late,) = inbox.deliver("late")
    end_events(inbox.connection, "dead", [late], handler="shop.credit")

    begun = agent.call("replay", confirmation=plan.known["confirmation"])

    assert plan.known["plan"]["would_be_replayed"] == 3
    assert (begun.known["matched"], begun.known["rate"], begun.known["state"]) == (3, 5, "running")


def test_plan_of_another_server_or_one_that_was_changed_is_refused(own):
    _, agent = own
    confirmation = agent.call("plan_replay", events=[6]).known["confirmation"]
    raw = bytearray(base64.urlsafe_b64decode(confirmation))
    raw[-40] ^= 1
    changed = base64.urlsafe_b64encode(raw).decode()

    assert "make a plan first" in agent.refusal("replay", confirmation=changed)
    assert "make a plan first" in Agent(agent.url, agent.token).refusal("replay", confirmation=confirmation)


def test_plan_is_good_for_a_while(own, monkeypatch):
    _, agent = own
    confirmation = agent.call("plan_replay", events=[6]).known["confirmation"]
    from hookonce.receiver.api.mcp import replays  # noqa: PLC0415  it imports the protocol's library, a second

    now = replays.time.time()
    monkeypatch.setattr(replays.time, "time", lambda: now + replays.CONFIRMATION_LASTS.total_seconds() + 1)

    assert "too old" in agent.refusal("replay", confirmation=confirmation)


def test_token_that_only_reads_plans_nothing(ledger):
    inbox, url = ledger

    assert "lacks the scope replay" in Agent(url, inbox.tokens["read"]).refusal("plan_replay", events=[6])


def test_read_only_server_has_no_tool_that_replays(ledger):
    inbox, url = ledger
    every = set(Agent(url, inbox.tokens["agent"]).tools())
    left = set(Agent(url, inbox.tokens["agent"], read_only=True).tools())

    assert every - left == {"plan_replay", "plan_bulk_replay", "replay"}


def test_only_replay_says_that_it_changes_something(agent):
    tools = agent.tools()

    assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["replay"]
    assert all(tool.description for tool in tools.values())
