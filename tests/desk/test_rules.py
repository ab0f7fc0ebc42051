"""Rules of every action: its scope, what its plan leaves alone, what it notes in the audit, and whom it wakes."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.config.alerts import Alerts
from hookonce.receiver.desk import dead_letters
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.ledger import handshake_secrets, quarantine
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.decryption import pack
from hookonce.receiver.ledger.quarantine import Arrival
from hookonce.receiver.source import Quarantine
from tests.support.issues import ID, die_of
from tests.support.outcomes import end_events, put_into_state
from tests.support.steps import UNKNOWN, event_with_steps

HANDLER = "shop.credit"
REPLAYING = {
    *("replay", "release", "discard_events", "mark_issue", "decide_step", "wake", "start_bulk_replay"),
    *("step_bulk_replay", "stop_bulk_replay", "continue_bulk_replay"),
}
ADMINISTERING = {
    *("pause", "resume", "prune", "erase_events", "forget_window", "forget_entity", "forget_handed_secret"),
    *("reverify_source", "send_test_event", "send_edited_event", "send_test_alert", "revoke_token"),
    "list_keys",  # it reads every row
}
OF_CONTENT = {"search_bodies", "get_event_body", "get_other_body", "diff_event"}
LONG = {
    *("prune", "erase_events", "forget_window", "reverify_source", "search_bodies", "resume"),
    *("send_test_event", "send_edited_event"),
}


def event(here, *runs, status=None):
    (number,) = here.deliver("evt_1", body=b'{"id": "evt_1", "type": "invoice.paid"}')
    put_into_state(here.connection, number, status, runs)
    return number


def dead(here):
    return event(here, (HANDLER, "dead", 3))


def bulk(here):
    dead(here)
    return here.ask("start_bulk_replay", filter={"status": "dead"}, driven=True).json["id"]


def stopped_bulk(here):
    number = bulk(here)
    here.ask("stop_bulk_replay", bulk=number)
    return number


def waiting(here):
    number = event(here, (HANDLER, "waiting", 0))
    here.connection.execute(
        "INSERT INTO hookonce.waits (event, handler, cycle, name, key, source, type, until) "
        "VALUES (%s, %s, 1, 'ci', '', 'stripe', 'check', now() + interval '1 day')",
        [number, HANDLER],
    )
    return number


def entity(here):
    here.connection.execute(
        "INSERT INTO hookonce.entities (source, entity, account, handler, version, event) "
        "VALUES ('stripe', 'customer:cus_1', '', %s, 1, 1)",
        [HANDLER],
    )


def old(here):
    event(here, status="ignored")
    here.connection.execute("UPDATE hookonce.events SET received_at = now() - interval '100 days'")


def quarantined(here):
    here.connection.execute(
        "INSERT INTO hookonce.quarantine (source, reason, key_id, delivery) VALUES ('stripe', 'stale', 'a', 'sealed')"
    )


def with_tests(here):
    here.settings.sources["stripe"] = replace(here.settings.sources["stripe"], tests=True)
    return event(here, (HANDLER, "done", 1))


def told(here):
    here.settings = replace(here.settings, alerts=Alerts(urls=("",)))


@dataclass(frozen=True)
class Change:
    """A rule of a change: rows made before, arguments, and the audit's line after; `{}` is the result of `prepare`."""

    prepare: object
    asked: dict
    audit: tuple[str, str] | None
    wakes: bool = False


CHANGES = {
    "replay": Change(dead, {"events": ["{}"]}, ("replay", "event {}"), wakes=True),
    "release": Change(
        lambda here: event(here, status="held"), {"events": ["{}"]}, ("release", "event {}"), wakes=True
    ),
    "discard_events": Change(dead, {"events": ["{}"]}, ("discard", "event {}")),
    "mark_issue": Change(
        lambda here: die_of(here.connection, "a"),
        {"issue": ID, "state": "fixed"},
        ("issue fixed", f"issue {ID}"),
    ),
    "decide_step": Change(
        lambda here: event_with_steps(here.connection, UNKNOWN),
        {"event": "{}", "handler": "shop.pay", "step": "mail", "decision": "forget"},
        ("forget step", "event {}"),
    ),
    "wake": Change(waiting, {"event": "{}", "handler": HANDLER}, ("wake", "event {}"), wakes=True),
    "start_bulk_replay": Change(dead, {"filter": {"status": "dead"}}, ("bulk replay", "bulk replay 1")),
    "step_bulk_replay": Change(bulk, {"bulk": "{}"}, ("end", "bulk replay {}"), wakes=True),
    "stop_bulk_replay": Change(bulk, {"bulk": "{}"}, ("stop", "bulk replay {}")),
    "continue_bulk_replay": Change(stopped_bulk, {"bulk": "{}"}, ("go on", "bulk replay {}")),
    "pause": Change(dead, {"kind": "source", "name": "stripe"}, ("pause", "source stripe")),
    "resume": Change(
        lambda here: here.ask("pause", kind="source", name="stripe"),
        {"kind": "source", "name": "stripe"},
        ("resume", "source stripe"),
        wakes=True,
    ),
    "prune": Change(old, {}, ("prune", "ledger")),
    "erase_events": Change(dead, {"events": ["{}"]}, ("erase", "event {}")),
    "forget_window": Change(dead, {}, None),
    "forget_entity": Change(
        entity, {"source": "stripe", "entity": "customer:cus_1"}, ("forget entity", "source stripe")
    ),
    "forget_handed_secret": Change(
        lambda here: handshake_secrets.keep(here.connection, "stripe", "handed-out", OFF),
        {"source": "stripe"},
        ("forget secret", "source stripe"),
    ),
    "reverify_source": Change(quarantined, {"source": "stripe"}, None),
    "send_test_event": Change(with_tests, {"source": "stripe"}, ("test event", "source stripe")),
    "send_edited_event": Change(
        with_tests,
        {"event": "{}", "body": '{"id": "evt_1Q", "object": "event", "type": "invoice.paid", "n": 2}'},
        ("send edited", "event {}"),
    ),
    "send_test_alert": Change(told, {}, None, wakes=True),
    "revoke_token": Change(
        lambda here: api_tokens.create(here.connection, "ci", [Scope.READ], None, "a test"),
        {"name": "ci"},
        ("revoke token", "token ci"),
    ),
}
MISSING = [
    *((name, {"event": "9"}) for name in ("get_event", "get_event_body", "diff_event", "list_steps")),
    ("get_other_body", {"event": "9", "body": 1}),
    ("decide_step", {"event": "9", "handler": "a", "step": "b", "decision": "forget"}),
    ("decide_step", {"event": "{}", "handler": "a", "step": "b", "decision": "forget"}),
    ("wake", {"event": "9", "handler": "a"}),
    ("send_edited_event", {"event": "9", "body": "{}"}),
    *((f"{name}_bulk_replay", {"bulk": 9}) for name in ("get", "step", "stop", "continue")),
    *((name, {"source": "strip"}) for name in ("get_source", "reverify_source", "send_test_event")),
    ("forget_handed_secret", {"source": "stripe"}),
    ("pause", {"kind": "source", "name": "strip"}),
    ("resume", {"kind": "source", "name": "stripe"}),
    ("get_issue", {"issue": ID}),
    ("mark_issue", {"issue": ID, "state": "fixed"}),
    ("get_entity", {"source": "stripe", "entity": "customer:cus_9"}),
    ("forget_entity", {"source": "stripe", "entity": "customer:cus_9"}),
    *((name, {"rejection": 9}) for name in ("get_rejected", "explain_rejected")),
    ("pull_event", {"pull": 9, "event": 1}),
    ("pull_events", {"pull": 9, "cursor": "0" * 32 + ".1.1.1.1."}),
    ("explain_word", {"word": "leese"}),
    ("revoke_token", {"name": "nobody"}),
]


def filled(value, number):
    """Put a number into what is asked."""
    if isinstance(value, dict):
        return {name: filled(each, number) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, number) for each in value]
    if value == "{}":
        return number
    return value


def all_rows(here):
    """Give what the ledger holds, but for the audit, and when the clock was looked at."""
    tables = here.rows(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'hookonce' AND table_type = 'BASE TABLE'"
    )
    return {
        name: sorted(map(str, here.rows(f"SELECT t FROM hookonce.{name} t")))  # noqa: S608
        for (name,) in tables
        if name not in {"audit", "clock"}
    }


def audited(here):
    return here.rows("SELECT who, action, subject FROM hookonce.audit WHERE action <> 'look' ORDER BY id")


def test_each_action_needs_its_scope():
    scopes = {name: each.scope for name, each in ACTIONS.items()}

    assert {name for name, scope in scopes.items() if scope == "replay"} == REPLAYING
    assert {name for name, scope in scopes.items() if scope == "admin"} == ADMINISTERING
    assert {name for name, scope in scopes.items() if scope is None} == {"get_token"}
    assert {name for name, each in ACTIONS.items() if each.changes} == CHANGES.keys()


def test_actions_that_may_take_long_are_not_done_in_one_transaction():
    assert {name for name, each in ACTIONS.items() if not each.is_atomic} == LONG


@pytest.mark.parametrize(
    ("action", "missing"),
    [
        *((name, "replay") for name in sorted(ADMINISTERING)),
        *((name, "read+bodies") for name in sorted(REPLAYING | ADMINISTERING)),
        *((name, "replay+bodies") for name in sorted({*ACTIONS} - REPLAYING - ADMINISTERING - {"get_token"})),
        *((name, "read") for name in sorted(OF_CONTENT)),
    ],
)
def test_action_is_refused_to_a_token_without_its_scope(calm_desk, action, missing):
    asked = CHANGES[action].asked if action in CHANGES else dict(MISSING).get(action, {})
    asked = {"text": "a"} if action == "search_bodies" else filled(asked, "1")

    assert calm_desk.ask(action, **asked, scope=missing).kind == "Forbidden"


@pytest.mark.parametrize("action", sorted(CHANGES))
def test_plan_changes_nothing_and_what_is_confirmed_is_noted(here, action):
    change = CHANGES[action]
    number = change.prepare(here)
    asked = filled(change.asked, str(number))
    before, noted = all_rows(here), audited(here)

    planned = here.plan(action, **asked)
    left = all_rows(here), audited(here)
    done = here.confirm()

    assert (planned.kind, left) == ("done", (before, noted)), planned.json
    assert done.kind == "done", done.json
    expected = [tuple(text.format(number) for text in change.audit)] if change.audit else []
    assert audited(here)[len(noted) :] == [("admin (token)", *line) for line in expected]
    assert (here.notified, all_rows(here) != before) == (change.wakes, action != "reverify_source")


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        *(
            (name, {})
            for name in ("list_events", "count_events", "list_dead_letters", "discard_events", "erase_events")
        ),
        ("search_bodies", {"text": "a"}),
    ],
)
def test_events_are_chosen_by_an_error_where_one_may_see_it(calm_desk, action, asked):
    scope = "replay" if action in REPLAYING else "admin" if action in ADMINISTERING else "read"
    refused = calm_desk.ask(action, error="*planted*", **asked, scope=scope)

    assert refused.kind == ("Forbidden" if scope != "admin" else "done")


def test_bulk_replay_by_an_error_needs_the_scope_bodies(calm_desk):
    wanted = {"status": "dead", "error": "*planted*"}

    assert calm_desk.ask("start_bulk_replay", filter=wanted, scope="replay").kind == "Forbidden"


def test_plan_of_a_replay_leaves_alone_what_has_changed_since(here):
    number = dead(here)
    here.plan("replay", events=[number], again=True)
    here.connection.execute("UPDATE hookonce.runs SET status = 'done'")

    assert [each["fate"] for each in here.confirm().json["outcomes"]] == ["changed"]


@pytest.mark.parametrize(("action", "done"), [("erase_events", "erased"), ("discard_events", "discarded")])
def test_plan_of_named_events_leaves_alone_what_ends_meanwhile(here, action, done):
    number = dead(here)
    (other,) = here.deliver("evt_2", status="running")
    here.plan(action, events=[str(number), str(other), "999", "nope"])
    here.connection.execute("DELETE FROM hookonce.claims")
    end_events(here.connection, "dead", [other])

    answer = here.confirm().json

    assert [each["id"] if isinstance(each, dict) else each for each in answer[done]] == [number]
    assert (answer["unknown"], answer["unknown_names"]) == ([999], ["nope"])


def test_plan_of_a_bulk_replay_takes_nothing_that_came_later(here):
    dead(here)
    here.plan("start_bulk_replay", filter={"status": "dead"})
    here.deliver("evt_2", status="dead")

    assert here.confirm().json["matched"] == 1


def test_plan_of_a_verification_takes_nothing_in(here):
    here.settings = replace(here.settings, keyring=Keyring([bytes(range(32))]))
    now = datetime.now(UTC)
    genuine = pack(
        load("stripe").delivery(b'{"id": "evt_1", "type": "invoice.paid"}', "whsec_of_the_tests", now)
    )
    arrival = Arrival("no_secret", timedelta(0), genuine)
    quarantine.keep(here.connection, "stripe", Quarantine(), here.settings.keyring, [arrival])

    planned = here.plan("reverify_source", source="stripe").json
    before, done = here.rows("SELECT count(*) FROM hookonce.events"), here.confirm().json

    assert (planned["genuine"], planned["dry_run"], before) == (1, True, [(0,)])
    assert (done["accepted"], here.rows("SELECT event_id FROM hookonce.events")) == (1, [("evt_1",)])
    assert audited(here) == [("admin (token)", "reverify", "source stripe")]


def test_events_of_a_filter_are_discarded_step_by_step(here, monkeypatch):
    monkeypatch.setattr(dead_letters, "REPLAY_BATCH", 2)
    numbers = here.deliver(*"abc", status="dead")

    first = here.ask("discard_events", status="dead", dry_run=True).json
    rest = here.ask("discard_events", status="dead", dry_run=True, cursor=first["next"]).json

    found = [[row["id"] for row in each["discarded"]] for each in (first, rest)]
    assert (found, rest["next"]) == ([numbers[1:], numbers[:1]], None)


@pytest.mark.parametrize(
    ("way", "action", "asked"),
    [("ask", *each) for each in MISSING] + [("plan", *each) for each in MISSING if each[0] in CHANGES],
)
def test_thing_that_is_not_there_is_not_found_and_nothing_is_noted(here, way, action, asked):
    number = event(here, (HANDLER, "done", 1))
    before = all_rows(here)

    refused = getattr(here, way)(action, **filled(asked, str(number)))

    assert refused.kind == "NotFound", refused.json
    assert (all_rows(here), audited(here)) == (before, [])
