from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import redis

from hookonce.receiver.app import create_app
from hookonce.receiver.config.alerts import Alerts
from hookonce.receiver.desk import events as desk_events
from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import handshake_secrets, store
from hookonce.receiver.ledger import rejected as ledger_rejected
from hookonce.receiver.ledger.queries import events as event_queries
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.new_event import new_event
from tests.support.outcomes import lose_events, put_into_state


def follow(inbox, path):
    """Give all rows of a listing, page by page."""
    rows, cursor = [], ""
    while cursor is not None:
        page = inbox.ask("GET", path + cursor).json
        rows += page["data"]
        cursor = page["next"] and f"&cursor={page['next']}"
    return rows


def test_events_come_page_by_page_newest_first(inbox):
    ids = inbox.deliver("a", "b", "c", "d", "e")

    assert [row["id"] for row in follow(inbox, "/events?limit=2")] == ids[::-1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("source=stripe", {"evt_1", "evt_2", "cus_1"}),
        ("source=github", set()),
        ("provider=stripe&event_id=evt_", {"evt_1", "evt_2"}),
        ("type=invoice.*", {"evt_1", "evt_2"}),
        ("type=customer.created", {"cus_1"}),
        ("status=dead", {"evt_2"}),
        ("account=acct_1", {"cus_1"}),
        ("since=1h", {"evt_1", "evt_2", "cus_1"}),
        ("until=1h", set()),
        ("since=2020-01-31T14:00:00%2B02:00&until=2020-02-01T00:00:00Z", set()),
    ],
)
def test_events_are_those_of_the_filter(inbox, query, found):
    inbox.deliver("evt_1")
    inbox.deliver("evt_2", status="dead")
    inbox.deliver("cus_1", type="customer.created", account="acct_1")

    assert {row["event_id"] for row in inbox.ask("GET", f"/events?{query}").json["data"]} == found


def test_events_are_counted_by_type_and_status(inbox):
    inbox.deliver("evt_1", "evt_2", status="dead")
    inbox.deliver("evt_3", "cus_1", type="customer.created")

    counted = inbox.ask("GET", "/event-counts?event_id=evt_").json

    kinds = [(row["type"], row["status"], row["count"]) for row in counted["data"]]
    assert (counted["total"], kinds) == (
        3,
        [("invoice.paid", "dead", 2), ("customer.created", "received", 1)],
    )


def test_event_is_shown_with_runs_failures_and_other_bodies(inbox):
    (event,) = inbox.deliver("evt_1", body=b"{}")
    store.store(inbox.connection, [new_event("evt_1", b'{"other": 1}')])
    put_into_state(inbox.connection, event, runs=[("app.credit", "dead", 3)])
    failure = [event, "app.credit", 1, 3, "boom", Traceback((Raised("boom"),)).as_json]
    inbox.connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback) "
        "VALUES (%s, %s, %s, %s, %s, %s)",
        failure,
    )

    shown = inbox.ask("GET", f"/events/{event}").json

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


def test_body_is_a_download_byte_for_byte(inbox):
    (event,) = inbox.deliver("evt_1", body=b"<script>\x00\xff")

    answer = inbox.ask("GET", f"/events/{event}/body")

    assert answer.data == b"<script>\x00\xff"
    assert answer.content_type == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="event-{event}.bin"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_event_is_shown_after_retention_has_dropped_its_body(inbox):
    (event,) = inbox.deliver("evt_1")
    inbox.connection.execute("DELETE FROM hookonce.bodies")

    shown = inbox.ask("GET", f"/events/{event}").json

    assert (shown["url"], shown["headers"], shown["bytes"]) == (None, None, None)
    assert "retention" in inbox.ask("GET", f"/events/{event}/body").json["detail"]


def test_replay_says_what_became_of_each_and_rings(inbox):
    held, received = inbox.deliver("evt_1", status="held") + inbox.deliver("evt_2")

    answer = inbox.ask("POST", "/replays", {"events": [held, received, 99]}, scope="replay").json

    assert [(o["id"], o["fate"]) for o in answer["outcomes"]] == [
        (held, "released"),
        (received, "already_queued"),
    ]
    assert answer["unknown"] == [99]
    with redis.Redis.from_url(inbox.settings.redis_url) as client:
        assert WorkQueue(client).pending() == 1


def test_replay_of_what_is_done_is_refused_unless_one_says_again(inbox):
    (event,) = inbox.deliver("evt_1")
    put_into_state(inbox.connection, event, runs=[("shop.credit", "done", 1)])

    refused = inbox.ask("POST", "/replays", {"events": [event]})
    again = inbox.ask("POST", "/replays", {"events": [event], "again": True}).json["outcomes"][0]

    assert (refused.status_code, refused.json["code"]) == (409, "already_done")
    assert f"event {event}: shop.credit at 20" in refused.json["detail"]
    assert (again["fate"], again["handlers"]) == ("replayed", ["shop.credit"])
    assert inbox.rows("SELECT cycle, status FROM hookonce.run_states") == [(2, "waiting")]


def test_replay_of_several_says_which_of_them_are_done(inbox):
    done, dead = inbox.deliver("evt_1") + inbox.deliver("evt_2")
    put_into_state(inbox.connection, done, runs=[("shop.credit", "done", 1)])
    put_into_state(inbox.connection, dead, runs=[("shop.credit", "dead", 3)])

    answer = inbox.ask("POST", "/replays", {"events": [done, dead]}).json

    assert [(o["id"], o["fate"]) for o in answer["outcomes"]] == [(done, "already_done"), (dead, "replayed")]
    assert [run["handler"] for run in answer["outcomes"][0]["done"]] == ["shop.credit"]


def test_event_that_has_changed_since_it_was_seen_is_left_alone(inbox):
    (event,) = inbox.deliver("evt_1")
    put_into_state(inbox.connection, event, runs=[("shop.credit", "dead", 3)])
    asked = {"events": [event], "again": True}
    seen = inbox.ask("POST", "/replays", {**asked, "dry_run": True}).json["outcomes"][0]["view"]
    inbox.connection.execute("UPDATE hookonce.runs SET status = 'done'")

    late = inbox.ask("POST", "/replays", {**asked, "seen": [{"event": event, "view": seen}]}).json[
        "outcomes"
    ][0]
    then = inbox.ask("POST", "/replays", {**asked, "seen": [{"event": event, "view": late["view"]}]}).json[
        "outcomes"
    ][0]

    assert (late["fate"], then["fate"]) == ("changed", "replayed")


def test_release_leaves_alone_what_is_not_held(inbox):
    held, ignored = inbox.deliver("evt_1", status="held") + inbox.deliver("evt_2", status="ignored")

    answer = inbox.ask("POST", "/releases", {"events": [held, ignored]}).json

    assert [o["fate"] for o in answer["outcomes"]] == ["released", "changed"]


def test_bulk_replay_is_a_resource_that_can_be_stopped(inbox):
    inbox.deliver("evt_1", "evt_2", status="ignored")

    made = inbox.ask("POST", "/bulk-replays", {"filter": {"status": "ignored", "since": "1h"}, "rate": 5})
    path = made.headers["Location"].removeprefix("/api/v1")
    running, stopped = inbox.ask("GET", path).json, inbox.ask("POST", f"{path}/stop").json

    assert (made.status_code, made.json["matched"], made.json["filter"]["status"]) == (201, 2, "ignored")
    assert (running["state"], running["replayed"], stopped["state"]) == ("running", 0, "stopped")
    assert [row["id"] for row in follow(inbox, "/bulk-replays?limit=1")] == [made.json["id"]]


def test_bulk_replay_that_was_stopped_goes_on_and_one_that_is_over_does_not(inbox):
    inbox.deliver("evt_1", status="ignored")
    path = f"/bulk-replays/{inbox.ask('POST', '/bulk-replays', {'filter': {'status': 'ignored'}}).json['id']}"
    inbox.ask("POST", f"{path}/stop")

    going = inbox.ask("POST", f"{path}/continue", scope="replay").json["state"]
    inbox.connection.execute("UPDATE hookonce.bulk_replays SET last_event = until_event, ended_at = now()")

    assert (going, inbox.ask("POST", f"{path}/continue").json["state"]) == ("running", "complete")


def test_alert_can_be_tried_where_somebody_is_told(inbox):
    refused = inbox.ask("POST", "/alerts/test")
    alerted = replace(inbox.settings, alerts=Alerts(urls=("",)))
    with_urls = create_app(alerted)

    token = {"Authorization": f"Bearer {inbox.tokens['admin']}"}
    sent = with_urls.test_client().post("/api/v1/alerts/test", headers=token)
    with_urls.extensions["hookonce"].close()
    with redis.Redis.from_url(inbox.settings.redis_url) as client:
        rings = WorkQueue(client).pending()

    assert rings == 1
    assert (refused.status_code, refused.json["code"]) == (409, "no_urls")
    assert (sent.status_code, sent.headers["Location"]) == (201, f"/api/v1/events/{sent.json['event']}")
    assert inbox.rows("SELECT type, due_at IS NOT NULL FROM hookonce.event_states") == [("alert.test", True)]


def test_rejected_and_conflicts_are_listed_page_by_page(inbox):
    rejections = [
        ledger_rejected.Rejection(datetime.now(UTC), "stripe", reason, "why", '{"a": "b"}', b"\xffbody")
        for reason in ("stale", "bad_signature", "stale")
    ]
    ledger_rejected.add_rejections(inbox.connection, rejections, {("stripe", "stale"): 2})
    inbox.deliver("evt_1", "evt_2")
    store.store(inbox.connection, [new_event("evt_1", b"1"), new_event("evt_2", b"2")])

    rejected = follow(inbox, "/rejected?limit=1&reason=stale&source=stripe")

    assert [(row["reason"], row["body_prefix"]) for row in rejected] == [("stale", "\ufffdbody")] * 2
    assert [row["event_id"] for row in follow(inbox, "/conflicts?limit=1")] == ["evt_2", "evt_1"]


def test_source_shows_slots_in_use_and_no_secret(inbox):
    ledger_rejected.add_secret_uses(inbox.connection, {("stripe", 2): 3, ("stripe", 4): 1})

    answer = inbox.ask("GET", "/sources/stripe")

    used = [(slot["slot"], slot["is_configured"], slot["count"]) for slot in answer.json["secrets"]]
    assert used == [(1, True, 0), (2, True, 3), (4, False, 1)]
    assert answer.json == inbox.ask("GET", "/sources").json["data"][0]
    assert "whsec" not in answer.text


def test_number_that_is_no_ledger_id_names_no_event(inbox):
    too_large = "0" * 19 + "1" + "9" * 20

    answer = inbox.ask("POST", "/replays", {"events": [too_large]}, scope="replay")

    assert (answer.status_code, answer.json["unknown_names"]) == (200, [too_large])


def test_handed_out_secret_is_listed_unseen_and_forgotten(inbox):
    handshake_secrets.keep(inbox.connection, "stripe", "handed-out-secret", OFF)

    listed = inbox.ask("GET", "/secrets")
    forgotten = inbox.ask("DELETE", "/secrets/stripe")

    assert [(row["source"], row["is_in_use"]) for row in listed.json["data"]] == [("stripe", False)]
    assert "handed-out" not in listed.text
    assert (forgotten.status_code, forgotten.data, handshake_secrets.all_kept(inbox.connection)) == (
        204,
        b"",
        [],
    )


def test_source_and_handler_are_paused_and_resumed(inbox):
    inbox.ask("PUT", "/pauses/source/stripe")
    inbox.ask("PUT", "/pauses/handler/app.credit")

    paused = inbox.ask("GET", "/pauses").json["data"]
    resumed = inbox.ask("DELETE", "/pauses/source/stripe")

    assert [(each["kind"], each["name"]) for each in paused] == [
        ("handler", "app.credit"),
        ("source", "stripe"),
    ]
    assert inbox.ask("GET", "/handlers").json["data"] == [
        {
            "name": "app.credit",
            "takes": [],
            "runs": 0,
            "done": 0,
            "open": 0,
            "dead": 0,
            "failure_rate": 0.0,
            "p50_seconds": None,
            "p99_seconds": None,
            "latest_run": None,
            "is_paused": True,
            "paused_by": "person",
            "limits": None,
            "breaker": None,
            "waiting_for_limit": 0,
            "rate_delay_seconds": 0.0,
            "batches": None,
            "suspects": 0,
            "long_transaction": None,
        }
    ]
    assert resumed.status_code == 204


def test_stats_count_what_is_there(inbox):
    inbox.deliver("evt_1")
    inbox.deliver("evt_2", status="dead")
    inbox.deliver("evt_3", "evt_4", status="held")

    stats = inbox.ask("GET", "/stats").json

    assert (stats["dead"], stats["held"], stats["notifications_pending"]) == (1, 2, 0)
    assert {row["status"]: row["count"] for row in stats["events"]} == {"dead": 1, "held": 2, "received": 1}


def test_prune_says_what_would_go_then_lets_it_go(inbox):
    inbox.deliver("evt_1", status="ignored")
    inbox.connection.execute("UPDATE hookonce.events SET received_at = now() - interval '100 days'")

    would, gone = (inbox.ask("POST", "/prune", {"dry_run": dry}).json for dry in (True, False))

    assert (would["events"], gone["events"], inbox.rows("SELECT count(*) FROM hookonce.event_states")) == (
        1,
        1,
        [(0,)],
    )


def test_window_forgets_every_event_id(inbox):
    with redis.Redis.from_url(inbox.settings.redis_url) as client:
        client.set("hookonce:place:{stripe:evt_1}", "accepted:00")

    assert inbox.ask("POST", "/window/forget").json == {"forgotten": 1}


def test_audit_and_alerts_are_listed_page_by_page(inbox):
    inbox.ask("PUT", "/pauses/source/stripe")
    inbox.ask("DELETE", "/pauses/source/stripe")
    inbox.connection.execute(
        "INSERT INTO hookonce.alerts (kind, subject, detail, ended_at) VALUES ('a', '', '', now()), ('b', '', '', NULL)"
    )

    assert [row["action"] for row in follow(inbox, "/audit?limit=1")][:2] == ["resume", "pause"]
    assert [row["kind"] for row in follow(inbox, "/alerts?limit=1")] == ["b", "a"]
    assert [row["kind"] for row in inbox.ask("GET", "/alerts?state=open").json["data"]] == ["b"]


def test_quarantine_is_listed_and_checked_again(inbox):
    inbox.connection.execute(
        "INSERT INTO hookonce.quarantine (source, reason, key_id, delivery) VALUES ('stripe', "
        "'stale', 'abcdef01', 'sealed')"
    )

    listed = inbox.ask("GET", "/quarantine").json["data"]
    checked = inbox.ask("POST", "/sources/stripe/reverify", {"since": "1h"})

    assert [(row["source"], row["reason"], row["count"]) for row in listed] == [("stripe", "stale", 1)]
    assert (checked.status_code, checked.json["looked_at"], checked.json["unopened"]) == (200, 1, 1)


def test_providers_are_listed_with_a_line_on_each(inbox):
    providers = {row["name"]: row["summary"] for row in inbox.ask("GET", "/providers").json["data"]}

    assert "HMAC" in providers["stripe"]


def test_token_tells_its_name_and_scopes(inbox):
    shown = inbox.ask("GET", "/token", scope="replay").json

    assert (shown["name"], shown["scopes"], shown["expires_at"]) == ("replay", ["replay"], None)


def test_dead_letters_are_grouped_by_cause(inbox):
    numbers = inbox.deliver("a", "b", "c")
    for number, error in zip(numbers, ("took 31 s", "took 29 s", "gone"), strict=True):
        put_into_state(inbox.connection, number, runs=[("shop.credit", "dead", 1)])
        inbox.connection.execute(
            "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error) "
            "VALUES (%s, 'shop.credit', 1, 1, %s)",
            [number, error],
        )

    found = inbox.ask("GET", "/dead-letters").json

    groups = [(row["handler"], row["error"], row["count"], row["newest_events"]) for row in found["data"]]
    assert groups == [
        ("shop.credit", "took * s*", 2, numbers[1::-1]),
        ("shop.credit", "gone*", 1, numbers[2:]),
    ]
    assert found["is_complete"]
    of_one = inbox.ask("GET", "/events?handler=shop.credit&error=took%20*%20s*").json
    assert [row["id"] for row in of_one["data"]] == numbers[1::-1]


def test_replay_that_is_only_tried_changes_nothing(inbox):
    (held,) = inbox.deliver("a", status="held")
    state = "SELECT status, due_at FROM hookonce.event_states"
    before = inbox.rows(state), inbox.rows("SELECT count(*) FROM hookonce.audit")

    tried = inbox.ask("POST", "/replays", {"events": [held, 99], "dry_run": True}).json

    assert [(row["id"], row["fate"]) for row in tried["outcomes"]] == [(held, "released")]
    assert tried["unknown"] == [99]
    assert (inbox.rows(state), inbox.rows("SELECT count(*) FROM hookonce.audit")) == before


def test_lost_events_are_found_page_by_page_however_far_back_they_are(inbox, monkeypatch):
    lost, *_ = inbox.deliver(*(f"evt_{n}" for n in range(9)))
    lose_events(inbox.connection, [lost])
    monkeypatch.setattr(event_queries, "NEWEST", 2)
    monkeypatch.setattr(desk_events, "LOOK_FOR_LOST", timedelta(0))

    pages = [inbox.ask("GET", "/events?status=lost").json]
    while pages[-1]["next"]:
        pages.append(inbox.ask("GET", f"/events?status=lost&cursor={pages[-1]['next']}").json)

    assert len(pages) > 1
    assert [(row["id"], row["status"]) for page in pages for row in page["data"]] == [(lost, "lost")]
    assert inbox.ask("POST", "/replays", {"events": [lost]}).json["outcomes"][0]["fate"] == "replayed"
    assert inbox.ask("GET", f"/events/{lost}").json["status"] == "received"


@pytest.mark.parametrize("named", ["{number}", "evt_151", "stripe:evt_151", "evt_15", "stripe:evt_15"])
def test_event_is_found_by_whatever_names_it(inbox, named):
    number, _ = inbox.deliver("evt_151", "cus_1")

    path = f"/events/{named.format(number=number)}"

    assert inbox.ask("GET", path).json["id"] == number
    assert inbox.ask("GET", f"{path}/body").headers["Content-Disposition"].endswith(f'"event-{number}.bin"')


def test_beginning_that_several_events_have_is_refused_with_their_names(inbox):
    inbox.deliver("evt_1", "evt_2")

    answer = inbox.ask("GET", "/events/evt_")

    assert (answer.status_code, answer.json["code"]) == (404, "ambiguous")
    assert "stripe:evt_1" in answer.json["detail"]


def test_number_is_a_ledger_id_and_nothing_else(inbox):
    inbox.deliver("77")

    assert inbox.ask("GET", "/events/77").status_code == 404
