import base64

import pytest

from hookonce.receiver.api.mcp import confirmations
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.ledger.access import api_tokens
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


def test_what_is_done_is_planned_only_if_one_says_again(own):
    inbox, agent = own
    (event,) = inbox.deliver("once")
    end_events(inbox.connection, "done", [event], handler="shop.credit")

    refusal = agent.refusal("replay", events=[event])
    again = agent.plan("replay", events=[event], again=True)
    outcome = agent.call("confirm", confirmation=again).known["outcomes"][0]

    assert f"already done: event {event}: shop.credit at 20" in refusal
    assert (outcome["fate"], cycles(inbox, event)) == ("replayed", [(2, "waiting")])


REFUSED = [
    ("replay", {"events": ["evt_none", 999]}, "none of these events is in the ledger: 999, evt_none"),
    ("start_bulk_replay", {"filter": {}}, "an empty filter would replay the whole ledger"),
    ("start_bulk_replay", {"filter": {"status": "dead", "source": "strip"}}, "did you mean 'stripe'?"),
    ("stop_bulk_replay", {"bulk": 9}, "no bulk replay has number 9"),
    ("mark_issue", {"issue": "0" * 12, "state": "fixed"}, "no issue has the id"),
    (
        "decide_step",
        {"event": 6, "handler": "a.b", "step": "c", "decision": "forget"},
        "has no step 'c' of a.b",
    ),
    ("pause", {"kind": "source", "name": "strip"}, "no source is called 'strip'"),
    ("resume", {"kind": "source", "name": "github"}, "the source 'github' is not paused"),
    ("forget_handed_secret", {"source": "stripe"}, "no sender has handed 'stripe' a secret"),
    ("send_test_event", {"source": "strip"}, "no source is called 'strip'"),
    ("send_edited_event", {"event": "evt_none", "body": "{}"}, "no event is 'evt_none'"),
]


@pytest.mark.parametrize(("tool", "arguments", "said"), REFUSED, ids=[each[2][:30] for each in REFUSED])
def test_what_could_only_be_refused_is_not_planned(tool, arguments, said, ledger):
    inbox, url = ledger

    assert said in Agent(url, inbox.tokens["admin"]).refusal(tool, **arguments)


def test_bulk_replay_takes_what_was_there_when_it_was_planned(own):
    inbox, agent = own
    wanted = {"status": "dead", "handler": "shop.credit", "since": "1h"}
    plan = agent.call("start_bulk_replay", filter=wanted, rate=5)
    (late,) = inbox.deliver("late")
    end_events(inbox.connection, "dead", [late], handler="shop.credit")

    begun = agent.call("confirm", confirmation=plan.known["confirmation"])

    assert plan.known["plan"]["total"] == 3
    assert (begun.known["matched"], begun.known["rate"], begun.known["state"]) == (3, 5, "running")


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


def test_pause_is_planned_and_then_made(own):
    inbox, agent = own
    inbox.tokens["admin"] = api_tokens.create(
        inbox.connection, "boss", [api_tokens.Scope.ADMIN], None, "a test"
    )
    boss = Agent(agent.url, inbox.tokens["admin"])

    plan = boss.plan("pause", kind="source", name="stripe")
    before = boss.call("list_pauses").known["data"]
    boss.call("confirm", confirmation=plan)

    assert ("source", "stripe") not in {(each["kind"], each["name"]) for each in before}
    assert boss.call("list_pauses").known["data"][-1]["name"] == "stripe"


@pytest.mark.parametrize(
    ("scope", "tool", "arguments"),
    [("replay", "replay", {"events": [6]}), ("admin", "pause", {"kind": "source", "name": "stripe"})],
)
def test_token_that_only_reads_plans_nothing(scope, tool, arguments, ledger):
    inbox, url = ledger

    assert f"lacks the scope {scope}" in Agent(url, inbox.tokens["read"]).refusal(tool, **arguments)


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
