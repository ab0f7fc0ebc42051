"""Twenty questions of an operator, answered by tool calls alone."""

import pytest

from tests.mcp.conftest import Agent


def kinds(told):
    return {
        (kind["status"], name): kind["count"]
        for kind, name in zip(told.known["kinds"], told.said["types"], strict=True)
    }


QUESTIONS = {
    "how many events are dead": (
        lambda ask: ask("overview").known["stats"]["dead"],
        5,
    ),
    "of what did they die, and how many of each": (
        lambda ask: [(g["handler"], g["count"]) for g in ask("why_dead").known["groups"]],
        [("shop.credit", 3), ("books.refund", 2)],
    ),
    "which error is it most often": (
        lambda ask: ask("why_dead").said[0]["example"],
        "ValueError: no such customer",
    ),
    "which events died of time": (
        lambda ask: [e["id"] for e in ask("list_events", status="dead", error="TimeoutError*").known["data"]],
        [10, 9],
    ),
    "which events of the handler shop.credit are dead": (
        lambda ask: [e["id"] for e in ask("list_events", status="dead", handler="shop.credit").known["data"]],
        [8, 7, 6],
    ),
    "how often was event 6 tried": (
        lambda ask: ask("show_event", event=6).known["runs"][0]["attempts"],
        10,
    ),
    "why does event 14 wait": (
        lambda ask: (ask("show_event", event=14).known["means"], ask("show_event", event=14).said["runs"]),
        (
            "an attempt failed, or asked for more time; it is due again at a set time",
            [{"handler": "shop.credit", "error": "KeyError: 'total'"}],
        ),
    ),
    "what does held mean, and which are": (
        lambda ask: (
            "event status" in ask("explain", word="held").known,
            [e["id"] for e in ask("list_events", status="held").known["data"]],
        ),
        (True, [13]),
    ),
    "what did event 6 bring": (
        lambda ask: ask("read_body", event=6).said,
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
        lambda ask: (
            "signing secret"
            in ask("list_rejected", reason="bad_signature").known["reasons"]["bad_signature"]["do"]
        ),
        True,
    ),
    "does stripe's secret need another look": (
        lambda ask: [s["slot"] for s in ask("list_sources").known[0]["secrets"]],
        [1, 2],
    ),
    "which source is silent": (
        lambda ask: [alert["subject"] for alert in ask("overview").known["open_alerts"]],
        ["github"],
    ),
    "how many deliveries are missing": (
        lambda ask: ask("what_is_silent").said[0]["detail"],
        "at least 40 deliveries are missing",
    ),
    "what is paused, and by whom": (
        lambda ask: (
            [(each["kind"], each["name"], each["by"]) for each in ask("overview").known["paused"]],
            [c["who"] for c in ask("list_changes").known["data"]][:1],
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
            for row in ask("plan_replay", events=[13, 6]).known["plan"]["outcomes"]
        ],
        [(6, "replayed", ["shop.credit"]), (13, "released", [])],
    ),
    "how many would a replay of all that died of time run again": (
        lambda ask: ask("plan_bulk_replay", status="dead", error="TimeoutError*").known["plan"][
            "would_be_replayed"
        ],
        2,
    ),
}


def test_there_are_twenty():
    assert len(QUESTIONS) == 20


@pytest.mark.parametrize("question", QUESTIONS)
def test_question_is_answered_by_tool_calls(question, agent):
    ask, answer = QUESTIONS[question]

    assert ask(agent.call) == answer


@pytest.mark.parametrize("named", [6, "6", "evt_6", "stripe:evt_6"])
def test_event_is_found_by_whatever_names_it(named, agent):
    assert agent.call("show_event", event=named).known["id"] == 6
    assert agent.call("read_body", event=named).said == '{"id": "evt_6"}'


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
