import json
import uuid

import pytest

from hookonce.receiver.ledger import store
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state

STOPPED = "it was cut off, or failed, and nobody knows whether it happened"


def event_with_steps(ledger, *steps, handlers=("shop.pay",), run="dead"):
    """An event whose handlers have steps: (name, state, result)."""
    event = store.store(ledger, [new_event("evt_1")])["stripe", "evt_1"].id
    for handler in handlers:
        for name, state, result in steps:
            ledger.execute(
                "INSERT INTO hookonce.steps (event, handler, name, state, owner, result, note) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [event, handler, name, state, uuid.uuid4(), result, None if result else STOPPED],
            )
    put_into_state(ledger, event, runs=[(handler, run, 1) for handler in handlers])
    return event


CHARGED = ("charge", "completed", b'{"id": "ch_1"}')
UNKNOWN = ("mail", "failed_final", None)


def left(ledger):
    return ledger.execute("SELECT handler, name, state FROM hookonce.steps ORDER BY 1, 2").fetchall()


def audited(ledger):
    return ledger.execute("SELECT action, subject, detail FROM hookonce.audit").fetchall()


@pytest.mark.usefixtures("inbox")
def test_stopped_steps_are_listed_and_all_of_an_event_shown(hookonce, ledger):
    event = event_with_steps(ledger, CHARGED, UNKNOWN)

    stopped = hookonce("steps", "list", "--json").documents
    shown = hookonce("events", "show", str(event), "--json").documents[0]["steps"]
    printed = hookonce("events", "show", str(event)).out.decode()

    assert [(step["event"], step["name"], step["note"]) for step in stopped] == [(event, "mail", STOPPED)]
    assert [(step["name"], step["status"], step["result"]) for step in shown] == [
        ("charge", "done", {"id": "ch_1"}),
        ("mail", "stopped", None),
    ]
    assert shown == hookonce("steps", "list", str(event), "--json").documents
    assert shown[0]["key"] in printed


@pytest.mark.usefixtures("inbox")
def test_person_says_what_a_stopped_step_gave(hookonce, ledger):
    event = event_with_steps(ledger, UNKNOWN)

    said = hookonce("steps", "done", str(event), "mail", "--result", '{"id": 7}')

    assert (said.code, said.err) == (0, f"noted; `hookonce replay {event}` goes on behind it\n")
    (step,) = hookonce("steps", "list", str(event), "--json").documents
    assert (step["status"], step["result"]) == ("done", {"id": 7})
    assert audited(ledger) == [("settle step", f"event {event}", {"handler": "shop.pay", "step": "mail"})]
    again = hookonce("steps", "done", str(event), "mail", "--result", "null")
    assert (again.code, "is done already" in again.err) == (1, True)


@pytest.mark.usefixtures("inbox")
def test_person_has_a_step_forgotten(hookonce, ledger):
    event = event_with_steps(ledger, CHARGED, UNKNOWN)

    assert hookonce("steps", "forget", str(event), "mail").code == 0

    assert left(ledger) == [("shop.pay", "charge", "completed")]
    assert audited(ledger) == [("forget step", f"event {event}", {"handler": "shop.pay", "step": "mail"})]


@pytest.mark.usefixtures("inbox")
def test_nobody_decides_about_a_run_that_is_under_way(hookonce, ledger):
    event = event_with_steps(ledger, UNKNOWN, run="running")

    for command in (("done", "--result", "1"), ("forget",)):
        refused = hookonce("steps", command[0], str(event), "mail", *command[1:])
        assert (refused.code, "is at work on event" in refused.err) == (1, True)

    assert left(ledger) == [("shop.pay", "mail", "failed_final")]


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("done", "{}", "mail", "--result", "{not json"), 2, "is not JSON; expected null"),
        (("done", "{}", "mail", "--result", "NaN"), 2, "is not JSON; expected null"),
        (("forget", "{}", "post"), 4, "has no step 'post'"),
        (("forget", "{}", "mail", "--handler", "other"), 4, "has no step 'mail' of other"),
        (("forget", "{}", "mail"), 2, "add --handler, one of a, b"),
        (("forget", "999", "mail"), 4, "no event is '999'"),
    ],
)
def test_decision_that_makes_no_sense_is_refused(hookonce, ledger, arguments, code, said):
    event = event_with_steps(ledger, UNKNOWN, handlers=("a", "b"))

    refused = hookonce(
        "steps", *(each.replace("{}", str(event), 1) if each == "{}" else each for each in arguments)
    )

    assert (refused.code, said in refused.err) == (code, True), refused.err
    assert len(left(ledger)) == 2


@pytest.mark.usefixtures("inbox", "rings")
def test_replay_keeps_what_steps_gave_unless_it_is_to_be_forgotten(hookonce, ledger):
    event = event_with_steps(ledger, CHARGED, ("mail", "completed", b"1"))
    assert hookonce("replay", str(event)).code == 0
    kept = left(ledger)

    said = hookonce("replay", str(event), "--forget-step", "mail", "--json")

    assert len(kept) == 2
    assert said.documents[0]["forgotten"] == ["shop.pay/mail"]
    assert left(ledger) == [("shop.pay", "charge", "completed")]
    assert json.dumps(audited(ledger)[-1]).count('"forgotten": ["shop.pay/mail"]') == 1


@pytest.mark.usefixtures("inbox", "rings")
def test_replay_forgets_no_step_of_a_run_that_is_under_way(hookonce, ledger):
    event = event_with_steps(ledger, CHARGED, run="running")

    hookonce("replay", str(event), "--forget-step", "charge")

    assert len(left(ledger)) == 1


@pytest.mark.usefixtures("inbox")
def test_bulk_replay_takes_no_step_to_forget(hookonce):
    refused = hookonce("replay", "--status", "dead", "--forget-step", "mail", "--yes")

    assert (refused.code, "--forget-step is for events that are named by ID" in refused.err) == (2, True)
