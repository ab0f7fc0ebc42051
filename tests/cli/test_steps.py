import pytest

from tests.support.steps import CHARGED, STOPPED, UNKNOWN, event_with_steps, left


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
    assert shown == hookonce("steps", "show", str(event), "--json").documents
    assert shown[0]["key"] in printed


@pytest.mark.usefixtures("inbox")
def test_person_says_what_a_stopped_step_gave(hookonce, ledger):
    event = event_with_steps(ledger, UNKNOWN)

    said = hookonce("steps", "done", str(event), "mail", "--result", '{"id": 7}')

    assert (said.code, said.err) == (0, f"noted; `hookonce replay {event}` goes on behind it\n")
    (step,) = hookonce("steps", "show", str(event), "--json").documents
    assert (step["status"], step["result"]) == ("done", {"id": 7})
    assert audited(ledger) == [("settle step", f"event {event}", {"handler": "shop.pay", "step": "mail"})]
    again = hookonce("steps", "done", str(event), "mail", "--result", "null")
    assert (again.code, "is done already" in again.err) == (1, True)


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("done", "{}", "mail", "--result", "{not json"), 2, "is not JSON; expected null"),
        (("done", "{}", "mail", "--result", "NaN"), 2, "is not JSON; expected null"),
        (("forget", "{}", "post"), 4, "has no step 'post'"),
        (("forget", "{}", "mail", "--handler", "other"), 4, "has no step 'mail' of other"),
        (("forget", "{}", "mail"), 2, "name its handler, one of a, b"),
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


@pytest.mark.usefixtures("inbox")
def test_bulk_replay_takes_no_step_to_forget(hookonce):
    refused = hookonce("replay", "--status", "dead", "--forget-step", "mail", "--yes")

    assert (refused.code, "--forget-step is for events that are named by ID" in refused.err) == (2, True)
