"""What a person has discarded is not run, counts as dead nowhere, stays a known id, and comes back by a replay."""

import pytest
import redis

from hookonce.jobs.alerts.watcher import AlertWatcher
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.desk.dead_letters import discard_events
from hookonce.receiver.desk.events import count_events, get_event
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.issues import get_issue, mark_issue
from hookonce.receiver.desk.refusals import Conflict
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.replays import replay
from hookonce.receiver.desk.stats import get_stats
from hookonce.receiver.ledger.store import store
from tests.desk.conftest import WAYS, agents_tools
from tests.support.issues import ID, die_of
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state

A, B = "shop.credit", "shop.mail"


@pytest.fixture
def desk(inbox):
    inbox.connection.execute(
        "TRUNCATE hookonce.events, hookonce.queue, hookonce.runs, hookonce.audit, hookonce.lost_slices, "
        "hookonce.event_counts, hookonce.activity, hookonce.issues CASCADE"
    )
    return Desk(load_settings(), inbox.connection, "ann")


def ask(desk, action, **given):
    return action(desk, **read(action, given))


def came(desk, name, status=None, runs=()):
    event = new_event(name)
    number = store(desk.connection, [event])[event.key].id
    if status or runs:
        put_into_state(
            desk.connection, number, *([status] if status else []), **({"runs": runs} if runs else {})
        )
    return number


def status(desk, event):
    return ask(desk, get_event, event=str(event)).status


@pytest.mark.parametrize("what", ["dead", "held", "waiting", "received"])
def test_event_that_is_not_running_is_discarded_and_a_replay_undoes_it(desk, what):
    runs = {"dead": [(A, "dead", 3)], "waiting": [(A, "waiting", 1)]}.get(what, ())
    event = came(desk, what, "held" if what == "held" else None, runs)

    found = ask(desk, discard_events, events=[event])
    again = ask(desk, discard_events, events=[event])

    assert [each.id for each in found.discarded] == [event]
    assert found.discarded[0].handlers == ([A] if runs else [])
    assert (again.discarded, again.ended) == ([], [event])
    assert status(desk, event) == "discarded"
    (outcome,) = ask(desk, replay, events=[event]).outcomes
    assert (outcome.fate, status(desk, event)) == ("replayed", "waiting" if runs else "received")


def test_discarded_event_is_dead_in_no_figure_and_a_late_copy_is_a_duplicate(desk):
    event = came(desk, "late", runs=[(A, "dead", 3)])

    ask(desk, discard_events, status="dead")

    stats = ask(desk, get_stats)
    assert (stats.dead, stats.account["discarded"]) == (0, 1)
    assert ask(desk, count_events, status="discarded").total == 1
    stored = store(desk.connection, [new_event("late")])
    assert [row.id for row in stored.values()] == [event]


def look_for_alerts(connection):
    """Have what is wrong be looked for again, as a worker does each minute."""
    connection.execute("UPDATE hookonce.watching SET evaluated_at = now() - interval '1 minute'")
    settings = load_settings()
    with redis.Redis.from_url(settings.redis_url) as client:
        AlertWatcher(settings, client).evaluate(connection)


@pytest.mark.parametrize("way", ["command", "at", "api", "tool"])
def test_discard_at_any_face_leaves_nothing_dead_and_no_alert_at_any(desk, everywhere, way):
    connection = desk.connection
    connection.execute("TRUNCATE hookonce.alerts")
    connection.execute("UPDATE hookonce.watching SET since = now() - interval '1 day'")
    die_of(connection, *(f"of_{way}_{n}" for n in range(5)))
    look_for_alerts(connection)
    assert everywhere.ask("api", "get_stats", {}, [])["alerts"] != []

    if way == "tool":
        tools, here = agents_tools(), lambda _: everywhere.desk
        asked = {"action": "discard_events", "arguments": {"status": "dead"}}
        plan = tools.call(here, "plan", asked).known["confirmation"]
        tools.call(here, "confirm", {"confirmation": plan})
    else:
        everywhere.ask(
            way, "discard_events", {"status": "dead"}, ["events", "discard", "--status", "dead", "--yes"]
        )

    look_for_alerts(connection)
    seen = {each: everywhere.ask(each, "get_stats", {}, ["stats", "--json"]) for each in WAYS[:4]}
    assert {each: (told["dead"], told["alerts"]) for each, told in seen.items()} == dict.fromkeys(
        seen, (0, [])
    )


def test_runs_of_one_handler_are_discarded_alone(desk):
    event = came(desk, "two", runs=[(A, "dead", 3), (B, "dead", 3)])

    found = ask(desk, discard_events, events=[event], handler=A)

    assert found.discarded[0].handlers == [A]
    assert {run.handler: run.status for run in ask(desk, get_event, event=event).runs} == {
        A: "discarded",
        B: "dead",
    }
    assert status(desk, event) == "dead"


def test_running_event_is_left_alone_and_said_so(desk):
    event = came(desk, "runs", runs=[(A, "running", 1)])

    found = ask(desk, discard_events, events=[event])

    assert (found.discarded, found.running) == ([], [event])
    assert status(desk, event) == "running"


def test_dry_run_says_the_same_and_changes_nothing(desk):
    event = came(desk, "dry", runs=[(A, "dead", 1)])

    shown = ask(desk, discard_events, events=[event, 999, "nope"], dry_run=True)

    assert ([each.id for each in shown.discarded], shown.unknown, shown.unknown_names) == (
        [event],
        [999],
        ["nope"],
    )
    assert status(desk, event) == "dead"


def test_plan_of_a_filter_takes_no_more_than_it_showed(desk):
    shown = came(desk, "shown", runs=[(A, "dead", 1)])
    plan = discard_events.plan(desk, **read(discard_events, {"status": "dead"}))
    later = came(desk, "later", runs=[(A, "dead", 1)])

    discard_events(desk, **plan.models)

    assert (status(desk, shown), status(desk, later)) == ("discarded", "dead")


@pytest.mark.parametrize("given", [{}, {"events": [1], "source": "stripe"}, {"handler": A}])
def test_nothing_or_both_is_refused(desk, given):
    with pytest.raises(Conflict, match="not both and not neither"):
        ask(desk, discard_events, **given)


@pytest.mark.parametrize("mark", [{"state": "fixed"}, {"state": "ignored", "until": "2999-01-01T00:00:00Z"}])
def test_issue_takes_its_dead_events_along_when_asked(desk, mark):
    (event,) = die_of(desk.connection, "of_issue")
    kept = ask(desk, mark_issue, issue=ID, **mark)
    assert (kept.dead, status(desk, event)) == (1, "dead")

    gone = ask(desk, mark_issue, issue=ID, discard=True, **mark)

    assert (gone.dead, status(desk, event)) == (0, "discarded")
    assert ask(desk, get_issue, issue=ID).state == mark["state"]
