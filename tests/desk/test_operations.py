import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import redis

from hookonce.receiver.config.alerts import Alerts
from hookonce.receiver.desk import listed_events
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.ledger import handshake_secrets, store
from hookonce.receiver.ledger import rejected as ledger_rejected
from hookonce.receiver.ledger.queries import events as event_queries
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from tests.ledger.test_body_search import fill as fill_sealed
from tests.support.new_event import new_event
from tests.support.outcomes import fail, lose_events, put_into_state


def follow(here, action, **asked):
    """Give all rows of a listing, page by page."""
    page = here.ask(action, **asked).json
    rows = page["data"]
    while page["next"]:
        page = here.ask(action, **asked, cursor=page["next"]).json
        rows += page["data"]
    return rows


def test_events_come_page_by_page_newest_first(here):
    ids = here.deliver("a", "b", "c", "d", "e")

    assert [row["id"] for row in follow(here, "list_events", limit=2)] == ids[::-1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"source": "stripe"}, {"evt_1", "evt_2", "cus_1"}),
        ({"source": "github"}, set()),
        ({"provider": "stripe", "event_id": "evt_"}, {"evt_1", "evt_2"}),
        ({"type": "invoice.*"}, {"evt_1", "evt_2"}),
        ({"type": "customer.created"}, {"cus_1"}),
        ({"status": "dead"}, {"evt_2"}),
        ({"account": "acct_1"}, {"cus_1"}),
        ({"since": "1h"}, {"evt_1", "evt_2", "cus_1"}),
        ({"since": "yesterday"}, {"evt_1", "evt_2", "cus_1"}),
        ({"since": "2020-01-31"}, {"evt_1", "evt_2", "cus_1"}),
        ({"until": "2020-01-31"}, set()),
        ({"until": "1h"}, set()),
        ({"since": "2020-01-31T14:00:00+02:00", "until": "2020-02-01T00:00:00Z"}, set()),
    ],
)
def test_events_are_those_of_the_filter(here, query, found):
    here.deliver("evt_1")
    here.deliver("evt_2", status="dead")
    here.deliver("cus_1", type="customer.created", account="acct_1")

    assert {row["event_id"] for row in here.ask("list_events", **query).json["data"]} == found


def test_events_are_counted_by_type_and_status(here):
    here.deliver("evt_1", "evt_2", status="dead")
    here.deliver("evt_3", "cus_1", type="customer.created")

    counted = here.ask("count_events", event_id="evt_").json

    kinds = [(row["type"], row["status"], row["count"]) for row in counted["data"]]
    assert (counted["total"], kinds) == (
        3,
        [("invoice.paid", "dead", 2), ("customer.created", "received", 1)],
    )


def test_event_is_shown_with_runs_failures_and_other_bodies(here):
    (event,) = here.deliver("evt_1", body=b"{}")
    store.store(here.connection, [new_event("evt_1", b'{"other": 1}')])
    put_into_state(here.connection, event, runs=[("app.credit", "dead", 3)])
    traceback = Traceback((Raised("boom"),)).as_json
    fail(here.connection, event, "boom", handler="app.credit", attempt=3, traceback=traceback)

    shown = here.ask("get_event", event=event).json

    assert (shown["event_id"], shown["bytes"], shown["headers"]) == ("evt_1", 2, {})
    assert [(r["handler"], r["status"], r["error"]) for r in shown["runs"]] == [
        ("app.credit", "dead", "boom")
    ]
    (failed,) = shown["failures"]
    assert [failed[key] for key in ("attempt", "error", "traceback", "unreadable")] == [
        3,
        "boom",
        "boom\n",
        None,
    ]
    assert [other["bytes"] for other in shown["conflicts"]] == [12]


def test_body_is_given_byte_for_byte(here):
    (event,) = here.deliver("evt_1", body=b"<script>\x00\xff")

    answer = here.ask("get_event_body", event=event)

    assert (answer.data, answer.name) == (b"<script>\x00\xff", f"event-{event}.bin")


def test_event_is_shown_after_retention_has_dropped_its_body(here):
    (event,) = here.deliver("evt_1")
    here.connection.execute("DELETE FROM hookonce.bodies")

    shown = here.ask("get_event", event=event).json

    assert (shown["url"], shown["headers"], shown["bytes"]) == (None, None, None)
    assert "retention" in here.ask("get_event_body", event=event).json["detail"]


def test_replay_says_what_became_of_each_and_rings(here):
    held, received = here.deliver("evt_1", status="held") + here.deliver("evt_2")

    answer = here.ask("replay", events=[held, received, 99], scope="replay").json

    assert [(o["id"], o["fate"]) for o in answer["outcomes"]] == [
        (held, "released"),
        (received, "already_queued"),
    ]
    assert answer["unknown"] == [99]
    assert here.notified


def test_replay_of_what_is_done_is_refused_unless_one_says_again(here):
    (event,) = here.deliver("evt_1")
    put_into_state(here.connection, event, runs=[("shop.credit", "done", 1)])

    refused = here.ask("replay", events=[event])
    again = here.ask("replay", events=[event], again=True).json["outcomes"][0]

    assert (refused.kind, refused.json["code"]) == ("Conflict", "already_done")
    assert f"event {event}: shop.credit at 20" in refused.json["detail"]
    assert (again["fate"], again["handlers"]) == ("replayed", ["shop.credit"])
    assert here.rows("SELECT cycle, status FROM hookonce.run_states") == [(2, "waiting")]


def test_replay_of_several_says_which_of_them_are_done(here):
    done, dead = here.deliver("evt_1") + here.deliver("evt_2")
    put_into_state(here.connection, done, runs=[("shop.credit", "done", 1)])
    put_into_state(here.connection, dead, runs=[("shop.credit", "dead", 3)])

    answer = here.ask("replay", events=[done, dead]).json

    assert here.notified
    assert [(o["id"], o["fate"]) for o in answer["outcomes"]] == [(done, "already_done"), (dead, "replayed")]
    assert [run["handler"] for run in answer["outcomes"][0]["done"]] == ["shop.credit"]


def test_event_that_has_changed_since_it_was_seen_is_left_alone(here):
    (event,) = here.deliver("evt_1")
    put_into_state(here.connection, event, runs=[("shop.credit", "dead", 3)])
    asked = {"events": [event], "again": True}
    seen = here.ask("replay", **asked, dry_run=True).json["outcomes"][0]["view"]
    here.connection.execute("UPDATE hookonce.runs SET status = 'done'")

    late = here.ask("replay", **asked, seen=[{"event": event, "view": seen}]).json["outcomes"][0]
    then = here.ask("replay", **asked, seen=[{"event": event, "view": late["view"]}]).json["outcomes"][0]

    assert (late["fate"], then["fate"]) == ("changed", "replayed")


def test_release_leaves_alone_what_is_not_held(here):
    held, ignored = here.deliver("evt_1", status="held") + here.deliver("evt_2", status="ignored")

    answer = here.ask("release", events=[held, ignored]).json

    assert [o["fate"] for o in answer["outcomes"]] == ["released", "changed"]


def test_bulk_replay_is_a_resource_that_can_be_stopped(here):
    here.deliver("evt_1", "evt_2", status="ignored")

    made = here.ask("start_bulk_replay", filter={"status": "ignored", "since": "1h"}, rate=5)
    bulk = made.json["id"]
    running = here.ask("get_bulk_replay", bulk=bulk).json
    stopped = here.ask("stop_bulk_replay", bulk=bulk).json

    assert (made.kind, made.json["matched"], made.json["filter"]["status"]) == ("done", 2, "ignored")
    assert (running["state"], running["replayed"], stopped["state"]) == ("running", 0, "stopped")
    assert [row["id"] for row in follow(here, "list_bulk_replays", limit=1)] == [made.json["id"]]


def test_bulk_replay_that_was_stopped_goes_on_and_one_that_is_over_does_not(here):
    here.deliver("evt_1", status="ignored")
    bulk = here.ask("start_bulk_replay", filter={"status": "ignored"}).json["id"]
    here.ask("stop_bulk_replay", bulk=bulk)

    going = here.ask("continue_bulk_replay", bulk=bulk, scope="replay").json["state"]
    here.connection.execute("UPDATE hookonce.bulk_replays SET last_event = until_event, ended_at = now()")

    assert (going, here.ask("continue_bulk_replay", bulk=bulk).json["state"]) == ("running", "complete")


def test_alert_can_be_tried_where_somebody_is_told(here):
    refused = here.ask("send_test_alert")
    here.settings = replace(here.settings, alerts=Alerts(urls=("",)))

    sent = here.ask("send_test_alert")

    assert (refused.json["code"], sent.kind) == ("no_targets", "done")
    assert here.rows("SELECT id, type, due_at IS NOT NULL FROM hookonce.event_states") == [
        (sent.json["event"], "alert.test", True)
    ]


def test_rejected_and_conflicts_are_listed_page_by_page(here):
    rejections = [
        ledger_rejected.Sample(datetime.now(UTC), "stripe", reason, "why", '{"a": "b"}', b"\xffbody")
        for reason in ("stale", "bad_signature", "stale")
    ]
    ledger_rejected.add_rejections(here.connection, rejections, {("stripe", "stale"): 2})
    here.deliver("evt_1", "evt_2")
    store.store(here.connection, [new_event("evt_1", b"1"), new_event("evt_2", b"2")])

    rejected = follow(here, "list_rejected", limit=1, reason="stale", source="stripe")

    assert [(row["reason"], row["body_prefix"]) for row in rejected] == [("stale", "\ufffdbody")] * 2
    assert [row["event_id"] for row in follow(here, "list_conflicts", limit=1)] == ["evt_2", "evt_1"]


def test_source_shows_slots_in_use_and_no_secret(here):
    ledger_rejected.add_secret_uses(here.connection, {("stripe", 2): 3, ("stripe", 4): 1})

    answer = here.ask("get_source", source="stripe")

    used = [(slot["slot"], slot["is_configured"], slot["count"]) for slot in answer.json["secrets"]]
    assert used == [(1, True, 0), (2, True, 3), (4, False, 1)]
    assert answer.json == here.ask("list_sources").json["data"][0]
    assert "whsec" not in str(answer)


def test_number_that_is_no_ledger_id_names_no_event(here):
    too_large = "0" * 19 + "1" + "9" * 20

    answer = here.ask("replay", events=[too_large], scope="replay")

    assert (answer.kind, too_large in answer.json["detail"]) == ("NotFound", True)


def test_handed_out_secret_is_listed_unseen_and_forgotten(here):
    handshake_secrets.keep(here.connection, "stripe", "handed-out-secret", OFF)

    listed = here.ask("list_handed_secrets")
    forgotten = here.ask("forget_handed_secret", source="stripe")

    assert [(row["source"], row["is_in_use"]) for row in listed.json["data"]] == [("stripe", False)]
    assert "handed-out" not in str(listed)
    assert (forgotten.kind, handshake_secrets.all_kept(here.connection)) == ("done", [])


def test_source_and_handler_are_paused_and_resumed(here):
    here.ask("pause", kind="source", name="stripe")
    here.ask("pause", kind="handler", name="app.credit")

    paused = here.ask("list_pauses").json["data"]
    resumed = here.ask("resume", kind="source", name="stripe")

    assert [(each["kind"], each["name"]) for each in paused] == [
        ("handler", "app.credit"),
        ("source", "stripe"),
    ]
    (handler,) = here.ask("list_handlers").json["data"]
    assert {name: value for name, value in handler.items() if value} == {
        "name": "app.credit",
        "is_paused": True,
        "paused_by": "person",
    }
    assert resumed.kind == "done"


def test_stats_count_what_is_there(here):
    here.deliver("evt_1")
    here.deliver("evt_2", status="dead")
    here.deliver("evt_3", "evt_4", status="held")

    stats = here.ask("get_stats").json

    assert (stats["dead"], stats["held"], stats["notifications_pending"]) == (1, 2, 0)
    assert {row["status"]: row["count"] for row in stats["events"]} == {"dead": 1, "held": 2, "received": 1}


def test_prune_says_what_would_go_then_lets_it_go(here):
    here.deliver("evt_1", status="ignored")
    here.connection.execute("UPDATE hookonce.events SET received_at = now() - interval '100 days'")

    would, gone = (here.ask("prune", dry_run=dry).json for dry in (True, False))

    assert (would["events"], gone["events"], here.rows("SELECT count(*) FROM hookonce.event_states")) == (
        1,
        1,
        [(0,)],
    )


def test_window_forgets_every_event_id(here):
    with redis.Redis.from_url(here.settings.redis_url) as client:
        client.set("hookonce:place:{stripe:evt_1}", "accepted:00")

    assert here.ask("forget_window").json == {"forgotten": 1}


def test_audit_and_alerts_are_listed_page_by_page(here):
    here.ask("pause", kind="source", name="stripe")
    here.ask("resume", kind="source", name="stripe")
    here.connection.execute(
        "INSERT INTO hookonce.alerts (kind, subject, detail, ended_at) VALUES ('a', '', '', now()), ('b', '', '', NULL)"
    )

    assert [row["action"] for row in follow(here, "list_audit", limit=1)][:2] == ["resume", "pause"]
    assert [row["kind"] for row in follow(here, "list_alerts", limit=1)] == ["b", "a"]
    assert [row["kind"] for row in here.ask("list_alerts", state="open").json["data"]] == ["b"]


def test_alerts_of_issues_hide_no_other_alert(here):
    here.connection.execute(
        "INSERT INTO hookonce.alerts (kind, subject, detail) VALUES ('clock', '', ''), "
        "('new_issue', 'a', ''), ('reopened_issue', 'b', '')"
    )

    listed = here.ask("list_alerts", state="open", without_issues=True, limit=1).json

    assert [row["kind"] for row in listed["data"]] == ["clock"]


def test_quarantine_is_listed_and_checked_again(here):
    here.connection.execute(
        "INSERT INTO hookonce.quarantine (source, reason, key_id, delivery) VALUES ('stripe', "
        "'stale', 'abcdef01', 'sealed')"
    )

    listed = here.ask("list_quarantine").json["data"]
    checked = here.ask("reverify_source", source="stripe", since="1h")

    assert [(row["source"], row["reason"], row["count"]) for row in listed] == [("stripe", "stale", 1)]
    assert (checked.kind, checked.json["looked_at"], checked.json["unopened"]) == ("done", 1, 1)


def test_providers_are_listed_with_a_line_on_each(here):
    providers = {row["name"]: row["summary"] for row in here.ask("list_providers").json["data"]}

    assert "HMAC" in providers["stripe"]


def test_token_tells_its_name_and_scopes(here):
    shown = here.ask("get_token", scope="replay").json

    assert (shown["name"], shown["scopes"], shown["expires_at"]) == ("replay", ["replay"], None)


def test_dead_letters_are_grouped_by_cause(here):
    numbers = here.deliver("a", "b", "c")
    for number, error in zip(numbers, ("took 31 s", "took 29 s", "gone"), strict=True):
        put_into_state(here.connection, number, runs=[("shop.credit", "dead", 1)])
        fail(here.connection, number, error)

    found = here.ask("list_dead_letters").json

    groups = [(row["handler"], row["error"], row["count"], row["newest_events"]) for row in found["data"]]
    assert groups == [
        ("shop.credit", "took * s*", 2, numbers[1::-1]),
        ("shop.credit", "gone*", 1, numbers[2:]),
    ]
    assert found["is_complete"]
    of_one = here.ask("list_events", handler="shop.credit", error="took * s*").json
    assert [row["id"] for row in of_one["data"]] == numbers[1::-1]


def test_lost_events_are_found_page_by_page_however_far_back_they_are(here, monkeypatch):
    lost, *_ = here.deliver(*(f"evt_{n}" for n in range(9)))
    lose_events(here.connection, [lost])
    monkeypatch.setattr(event_queries, "NEWEST", 2)
    monkeypatch.setattr(listed_events, "LOOK_FOR_LOST", timedelta(0))

    pages = [here.ask("list_events", status="lost").json]
    while pages[-1]["next"]:
        pages.append(here.ask("list_events", status="lost", cursor=pages[-1]["next"]).json)

    assert len(pages) > 1
    assert [(row["id"], row["status"]) for page in pages for row in page["data"]] == [(lost, "lost")]
    assert here.ask("replay", events=[lost]).json["outcomes"][0]["fate"] == "replayed"
    assert here.ask("get_event", event=lost).json["status"] == "received"


def test_number_is_a_ledger_id_and_nothing_else(here):
    here.deliver("77")

    assert here.ask("get_event", event="77").kind == "NotFound"


def test_search_is_in_the_audit_wherever_it_begins(here):
    here.settings = replace(here.settings, keyring=Keyring([os.urandom(32)]))
    fill_sealed(here.connection, 3, here.settings.keyring)

    found = here.ask("search_bodies", text="cus_1", cursor=f"{1000:016x}").json

    assert len(found["data"]) == 1
    assert here.rows("SELECT who, action, subject FROM hookonce.audit") == [
        ("admin (token)", "search", "a text in bodies")
    ]
