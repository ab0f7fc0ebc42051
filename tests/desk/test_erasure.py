"""Events of a person are erased, and their ids stay."""

import pytest

from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state

LEFT = """
SELECT (SELECT count(*) FROM hookonce.bodies WHERE event = e.id),
       (SELECT count(*) FROM hookonce.failures WHERE event = e.id),
       (SELECT count(result) FROM hookonce.runs WHERE event = e.id)
FROM hookonce.events e WHERE id = %s
"""


@pytest.fixture
def ended(inbox, request):
    """An event that has died, with an error and a result of another handler."""
    key = f"evt_of_{request.node.name}"
    (row,) = store(inbox.connection, [new_event(key, type="erased")]).values()
    put_into_state(inbox.connection, row.id, "dead", [("shop.credit", "dead", 1), ("shop.mail", "done", 1)])
    inbox.connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error) VALUES (%s, %s, 1, 1, %s)",
        [row.id, "shop.credit", "KeyError: ada"],
    )
    inbox.connection.execute(
        "UPDATE hookonce.runs SET result = '1' WHERE event = %s AND handler = 'shop.mail'", [row.id]
    )
    return row.id


def left(inbox, event):
    return inbox.connection.execute(LEFT, [event]).fetchone()


@pytest.mark.parametrize("place", [[], ["--at", "there"]], ids=["here", "there"])
def test_event_that_has_ended_is_erased_and_the_others_are_named(everywhere, inbox, ended, place):
    ((_, row),) = store(inbox.connection, [new_event(f"evt_open_{ended}", type="erased")]).items()
    asked = [*place, "events", "erase", ended, row.id, "nope"]

    shown = everywhere.run(*asked, "--dry-run")
    kept = left(inbox, ended)
    done = everywhere.run(*asked, "--yes", "--json")

    assert (shown.code, f"would be erased: {ended}" in shown.err, kept) == (3, True, (1, 1, 1))
    said = {name: done.documents[0][name] for name in ("erased", "open", "unknown_names")}
    assert (done.code, said) == (3, {"erased": [ended], "open": [row.id], "unknown_names": ["nope"]})
    assert (left(inbox, ended), left(inbox, row.id)[0]) == ((0, 0, 0), 1)
    [line] = everywhere.run("audit", "--subject", f"event {ended}", "--json").documents
    assert line["action"] == "erase"


def test_agent_erases_only_what_the_plan_has_shown(everywhere, inbox, ended):
    plan = everywhere.ask("tool", "erase_events", {"events": [str(ended)]}, [])

    assert (plan["dry_run"], plan["erased"], left(inbox, ended)) == (True, [ended], (1, 1, 1))


def test_nothing_is_erased_unasked(everywhere, inbox, ended):
    refused = everywhere.run("events", "erase", ended)

    assert (refused.code, "add --yes to erase them" in refused.err, left(inbox, ended)) == (
        2,
        True,
        (1, 1, 1),
    )
