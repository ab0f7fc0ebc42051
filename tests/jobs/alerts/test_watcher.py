import json
import os
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import redis

from hookonce import approximate as declare
from hookonce.jobs.alerts.watcher import AlertWatcher
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger import alerts, pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay import discards
from hookonce.receiver.ledger.replay.events import replay
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.stats.issues import IssueState
from hookonce.receiver.ledger.store import store
from hookonce.receiver.redis import approximate
from hookonce.receiver.redis.client import connect
from tests.support import desk
from tests.support.issues import ID, die_of
from tests.support.new_event import new_event
from tests.support.outcomes import end_events
from tests.support.waiting import PATIENT, at_once

CONFIGURATION = """
[alerts]
urls = ["https://alerts.example.com/in"]
secret = "env:ALERT_SECRET"
dead_runs = "2/1h"
[sources.stripe]
secrets = ["env:S"]
expect_every = "2h"
[sources.github]
secrets = ["env:S"]
"""


@pytest.fixture
def settings(database_url, redis_url, tmp_path):
    (tmp_path / "hookonce.toml").write_text(CONFIGURATION)
    return load_settings(
        {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"),
            "S": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ",
        }
    )


@pytest.fixture
def watch(settings):
    with redis.Redis.from_url(settings.redis_url) as client:
        yield AlertWatcher(settings, client)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        look_again(connection)
        saw(connection, "stripe", timedelta(0))
        connection.execute(
            "INSERT INTO hookonce.activity VALUES (1, date_trunc('minute', now()), '', 'filled', 0)"
        )
        yield connection


def look_again(connection):
    """Make it a turn, of a watch that has gone on for a year."""
    connection.execute(
        "UPDATE hookonce.watching SET evaluated_at = now() - interval '1 minute', since = now() - interval '365 days'"
    )


def saw(connection, source, ago):
    """Note a delivery as it is counted: under the minute that it came in."""
    connection.execute(
        "INSERT INTO hookonce.activity VALUES "
        "(0, 'epoch', %(s)s, 'last', extract(epoch FROM date_trunc('minute', now() - %(ago)s))) "
        "ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = excluded.count",
        {"s": source, "ago": ago},
    )


def happened(connection, source, what, number):
    connection.execute(
        "INSERT INTO hookonce.activity VALUES (1, date_trunc('minute', now()), %s, %s, %s)",
        [source, what, number],
    )


def died(connection, number, *, source="stripe", ago=timedelta(0)):
    """Store so many events that died so long ago."""
    ids = [f"{source}-{ago}-{n}" for n in range(number)]
    rows = store(connection, [new_event(event_id, source=source) for event_id in ids])
    return end_events(connection, "dead", [row.id for row in rows.values()], attempts=10, ago=ago)


def is_open(connection):
    return [(alert.kind, alert.subject) for alert in alerts.open_alerts(connection)]


def told(connection):
    return connection.execute(
        "SELECT type FROM hookonce.event_states WHERE source = 'hookonce' ORDER BY id"
    ).fetchall()


def said(connection):
    """Return the bodies of the events that tell of alerts."""
    rows = connection.execute(
        "SELECT b.body FROM hookonce.bodies b JOIN hookonce.events e ON e.id = b.event "
        "WHERE e.source = 'hookonce' ORDER BY e.id"
    )
    return [json.loads(body) for (body,) in rows]


def look(watch, connection):
    """Have it look again; return what is open then of issues."""
    look_again(connection)
    watch.evaluate(connection)
    return [label for label in is_open(connection) if label[0].endswith("_issue")]


def test_watch_finds_nothing_wrong_with_a_quiet_inbox(watch, connection):
    assert watch.evaluate(connection) == 0
    assert is_open(connection) == []


def test_watch_raises_an_alert_once_and_resolves_it_once(watch, connection):
    happened(connection, "github", "rejected.bad_signature", 30)
    for _ in range(3):
        look_again(connection)
        watch.evaluate(connection)
    assert is_open(connection) == [("signature_failures", "github")]

    connection.execute("DELETE FROM hookonce.activity WHERE what = 'rejected.bad_signature'")
    for _ in range(3):
        look_again(connection)
        watch.evaluate(connection)

    assert is_open(connection) == []
    assert told(connection) == [("alert.raised",), ("alert.resolved",)]


def test_watch_seals_what_it_tells_where_bodies_are_sealed(settings, connection):
    keyring = Keyring([os.urandom(32)])
    happened(connection, "stripe", "rejected.stale", 20)

    with redis.Redis.from_url(settings.redis_url) as client:
        AlertWatcher(replace(settings, keyring=keyring), client).evaluate(connection)

    assert connection.execute("SELECT key_id FROM hookonce.bodies").fetchall() == [(keyring.first,)]


def test_watch_raises_what_it_can_not_seal_and_sends_nothing_in_the_clear(settings, connection):
    died(connection, 2)

    with redis.Redis.from_url(settings.redis_url) as client:
        AlertWatcher(replace(settings, keyring=Keyring([None])), client).evaluate(connection)

    assert is_open(connection) == [("dead_runs", "stripe")]
    assert told(connection) == []


@pytest.mark.parametrize(
    ("source", "what", "number", "expected"),
    [
        ("stripe", "rejected.stale", 20, [("signature_failures", "stripe")]),
        ("stripe", "rejected.stale", 19, []),
        ("", "rejected.unknown_source", 1000, []),
        ("stripe", "duplicate", 1000, [("duplicates", "stripe")]),
        ("stripe", "duplicate", 999, []),
        ("stripe", "conflict", 5, [("conflicts", "stripe")]),
        ("stripe", "conflict", 4, []),
        ("stripe", "refused", 10, [("lost_leases", "stripe")]),
        ("stripe", "refused", 9, []),
    ],
)
def test_watch_measures_what_happened_by_its_thresholds(watch, connection, source, what, number, expected):
    happened(connection, source, what, number)

    watch.evaluate(connection)

    assert is_open(connection) == expected


@pytest.mark.parametrize(
    ("source", "number", "ago", "expected"),
    [
        ("stripe", 2, timedelta(minutes=59), [("dead_runs", "stripe")]),
        ("stripe", 1, timedelta(0), []),
        ("stripe", 2, timedelta(minutes=61), []),
        ("hookonce", 3, timedelta(0), []),
    ],
)
def test_watch_counts_what_died_within_the_time(watch, connection, source, number, ago, expected):
    died(connection, number, source=source, ago=ago)

    watch.evaluate(connection)

    assert is_open(connection) == expected


@pytest.mark.parametrize(("conflicts", "others", "expected"), [(3, 2, True), (2, 0, False), (3, 3, False)])
def test_watch_names_a_source_most_of_whose_deliveries_conflict(
    watch, connection, conflicts, others, expected
):
    happened(connection, "stripe", "conflict", conflicts)
    happened(connection, "stripe", "duplicate", conflicts)  # which a conflict is, too
    happened(connection, "stripe", "accepted", others)

    watch.evaluate(connection)

    said = [alert.detail for alert in alerts.open_alerts(connection)]
    assert is_open(connection) == [("conflicts", "stripe")] * expected
    assert all(f"{conflicts} of {conflicts + others} deliveries" in each for each in said)


def test_watch_minds_duplicates_only_where_they_are_more_than_what_is_new(watch, connection):
    happened(connection, "stripe", "duplicate", 2000)
    happened(connection, "stripe", "accepted", 2000)

    watch.evaluate(connection)

    assert is_open(connection) == []


@pytest.mark.parametrize(
    ("hours", "cycle", "expected"),
    [(25, 2, [("retried_for", "stripe")]), (23, 2, []), (25, 1, [])],
    ids=["too long", "not long", "before the replay"],
)
def test_watch_measures_how_long_an_event_is_tried_in_its_present_cycle(
    watch, connection, hours, cycle, expected
):
    (row,) = store(connection, [new_event()]).values()
    connection.execute(
        "UPDATE hookonce.queue SET handler = 'h', attempts = 3, cycle = 2, due_at = now() + interval '1 hour'"
    )
    connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, failed_at) "
        "VALUES (%s, 'h', %s, 1, '', now() - make_interval(hours => %s))",
        [row.id, cycle, hours],
    )

    watch.evaluate(connection)

    assert is_open(connection) == expected


def test_alert_of_dead_events_counts_what_its_command_finds(watch, connection):
    died(connection, 3)
    died(connection, 4, ago=timedelta(hours=5))

    watch.evaluate(connection)

    (alert,) = alerts.open_alerts(connection)
    assert alert.detail.startswith("3 events died within 1 h, and 7 are dead in all; see why with")


def test_alert_of_dead_events_ends_when_they_are_replayed(watch, connection):
    dead = died(connection, 5)
    watch.evaluate(connection)
    assert is_open(connection) == [("dead_runs", "stripe")]

    list(replay(connection, dead, "a test", again=True))
    look_again(connection)
    watch.evaluate(connection)

    assert is_open(connection) == []


@pytest.mark.parametrize(("pauses", "expected"), [((), [("oldest_due", "")]), (("stripe",), [])])
def test_watch_finds_an_event_that_nobody_takes_up(watch, connection, inbox, pauses, expected):
    inbox.deliver("a")
    connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '6 minutes'")
    for name in pauses:
        connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('source', %s)", [name])

    watch.evaluate(connection)

    assert is_open(connection) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(61, [("breaker_open", "shop.credit")]), (50, [])], ids=["long", "not long"]
)
def test_watch_finds_a_handler_that_its_breaker_has_stopped(watch, connection, seconds, expected):
    desk.stop(connection, "shop.credit", 2)
    opened = "UPDATE hookonce.breakers SET opened_at = opened_at - make_interval(secs => %s)"
    connection.execute(opened, [seconds])

    watch.evaluate(connection)

    assert is_open(connection) == expected
    for alert in alerts.open_alerts(connection):
        detail = re.sub(r"\b(6|9)\d s", r"\g<1>x s", alert.detail)  # seconds in which the test went on
        assert "has been open for 6x s (ConnectionError (shop.py:7)); expected 1 min at most" in detail
        assert "2 events wait, the oldest came 9x s ago" in detail


def test_alert_of_an_open_breaker_ends_when_a_person_takes_the_pause_over(watch, connection):
    desk.stop(connection, "shop.credit", 2)
    connection.execute("UPDATE hookonce.breakers SET opened_at = opened_at - interval '1 hour'")
    watch.evaluate(connection)
    raised = is_open(connection)

    pauses.pause(connection, "handler", "shop.credit", "ann")
    look_again(connection)
    watch.evaluate(connection)

    assert (raised, is_open(connection)) == ([("breaker_open", "shop.credit")], [])


@pytest.mark.parametrize(
    ("whose", "expected"),
    [("breaker", [("retried_for", "stripe")]), ("person", [])],
    ids=["breaker", "person"],
)
def test_watch_measures_how_long_an_event_is_tried_that_waits_for_a_breaker(
    watch, connection, whose, expected
):
    desk.stop(connection, "shop.credit", 1)
    if whose == "person":
        pauses.pause(connection, "handler", "shop.credit", "ann")
    connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, failed_at) "
        "SELECT event, handler, cycle, 1, '', now() - interval '25 hours' FROM hookonce.run_states"
    )

    watch.evaluate(connection)

    assert is_open(connection) == expected


def test_watch_misses_a_source_until_it_delivers_again(watch, connection):
    saw(connection, "stripe", timedelta(hours=3))
    watch.evaluate(connection)
    assert is_open(connection) == [("source_silent", "stripe")]

    saw(connection, "stripe", timedelta(0))
    look_again(connection)
    watch.evaluate(connection)

    assert is_open(connection) == []


def test_watch_misses_no_source_whose_delivery_is_not_counted_yet(watch, connection):
    saw(connection, "stripe", timedelta(hours=3))
    store(connection, [new_event("evt_uncounted")])

    watch.evaluate(connection)

    assert is_open(connection) == []


@pytest.mark.parametrize(
    "circumstance",
    [
        "UPDATE hookonce.watching SET since = now() - interval '1 hour'",
        "UPDATE hookonce.watching SET evaluated_at = now() - interval '6 minutes'",  # then the outage was ours
        "DELETE FROM hookonce.activity WHERE what = 'filled'",
    ],
)
def test_watch_blames_no_source_for_our_own_absence(watch, connection, circumstance):
    saw(connection, "stripe", timedelta(hours=3))
    connection.execute(circumstance)

    watch.evaluate(connection)

    assert is_open(connection) == []


def test_watch_learns_when_a_source_is_never_silent(watch, connection):
    saw(connection, "github", timedelta(hours=4))
    connection.execute(
        "INSERT INTO hookonce.activity SELECT 60, date_trunc('hour', now()) - n * interval '1 "
        "hour', 'github', 'accepted', 12 "
        "FROM generate_series(4, 24 * 50) AS n"
    )

    watch.evaluate(connection)

    (alert,) = alerts.open_alerts(connection)
    assert (alert.kind, alert.subject) == ("source_silent", "github")
    assert "in each of the last" in alert.detail


def test_watch_reports_a_redis_that_takes_no_writes(watch, connection, settings):
    with redis.Redis.from_url(settings.redis_url) as client:
        client.set("other", 1)
        watch._client = Refusing()  # noqa: SLF001

    watch.evaluate(connection)

    assert is_open(connection) == [("window_trouble", "redis")]


def test_watch_reports_an_approximate_set_that_is_nearly_full(watch, connection, settings):
    approximate.use(settings.redis_url)
    clicks = declare("clicks_of_alerts", keep="1h", most=100)
    clicks.mark(f"id-{n}" for n in range(70))
    watch.evaluate(connection)
    assert is_open(connection) == []

    clicks.mark(f"id-{n}" for n in range(85))
    look_again(connection)
    watch.evaluate(connection)

    approximate.use("")
    assert is_open(connection) == [("approximate_full", "clicks_of_alerts")]

    watch._settings = replace(settings, window_redis_url="redis://127.0.0.1:1")  # noqa: SLF001
    look_again(connection)
    assert watch.evaluate(connection) == 0
    assert is_open(connection) == [("approximate_full", "clicks_of_alerts")]


def test_watch_is_patient_with_a_redis_that_is_away(watch, connection):
    watch._client = connect("redis://127.0.0.1:1")  # noqa: SLF001
    watch.evaluate(connection)
    assert is_open(connection) == []

    watch._away_since -= 61  # noqa: SLF001
    look_again(connection)
    watch.evaluate(connection)

    assert is_open(connection) == [("redis_away", "redis")]


def test_watch_is_one_process_at_a_time(settings, connection, database_url):
    def look():
        with (
            connections.connect(database_url, **PATIENT) as own,
            redis.Redis.from_url(settings.redis_url) as client,
        ):
            barrier.wait()
            changes.append(AlertWatcher(settings, client).evaluate(own))

    died(connection, 5)
    barrier, changes = threading.Barrier(4, timeout=20), []
    at_once(*[look] * 4)

    assert sorted(changes) == [0, 0, 0, 1]
    assert told(connection) == [("alert.raised",)]


class Refusing:
    def set(self, *_args, **_options):
        raise redis.exceptions.OutOfMemoryError("OOM command not allowed when used memory > 'maxmemory'.")


AHEAD = timedelta(days=1)


def test_watch_goes_on_after_a_clock_was_ahead(watch, connection):
    connection.execute(
        "UPDATE hookonce.watching SET evaluated_at = now() + %s, since = now() + %s", [AHEAD, AHEAD]
    )
    died(connection, 2)

    watch.evaluate(connection)

    assert is_open(connection) == [("dead_runs", "stripe")]
    assert connection.execute(
        "SELECT since <= now(), evaluated_at <= now() FROM hookonce.watching"
    ).fetchone() == (
        True,
        True,
    )


def test_watch_resolves_an_alert_that_a_clock_which_was_ahead_has_raised(watch, connection):
    alert = alerts.raise_alert(connection, "source_silent", "stripe", "no delivery")
    connection.execute("UPDATE hookonce.alerts SET since = now() + %s WHERE id = %s", [AHEAD, alert.id])

    watch.evaluate(connection)

    assert is_open(connection) == []


def test_watch_tells_of_an_issue_that_is_new_and_of_a_fixed_one_that_fails_again(watch, connection):
    die_of(connection, "a")
    looks = [look(watch, connection)]
    (first,) = alerts.open_alerts(connection)
    issues.mark(connection, ID, IssueState.FIXED, "me")
    looks.append(look(watch, connection))
    die_of(connection, "b")
    looks.append(look(watch, connection))
    die_of(connection, "c", release="v2")
    looks.append(look(watch, connection))
    again = next(alert for alert in alerts.open_alerts(connection) if alert.kind == "reopened_issue")
    issues.mark(connection, ID, IssueState.IGNORED, "me", datetime.now(UTC) + timedelta(days=1))
    looks.append(look(watch, connection))

    assert looks == [[("new_issue", ID)], [], [], [("reopened_issue", ID)], []]
    assert first.detail.startswith(
        f"ValueError (shop/handlers.py:12) in shop.credit is new (release: v1); see it with `hookonce issues show {ID}`"
    )
    assert "in shop.credit failed again, though it was fixed (release: v2); " in again.detail
    assert "customer" not in first.detail + again.detail


@pytest.mark.parametrize(
    ("changes", "ago", "expected"),
    [
        ({}, "failed_at = now() - interval '2 days'", [("new_issue", ID)]),
        ({"handler": "hookonce.alert to alerts.example.com 1f0c2a"}, "failed_at = now()", []),
        ({}, "failed_at = now()", [("new_issue", ID)]),
    ],
    ids=["failed long ago and is dead", "of alerts themselves", "fails still"],
)
def test_watch_tells_of_issues_of_now_and_of_none_of_its_own(watch, connection, changes, ago, expected):
    die_of(connection, "a", **changes)
    look(watch, connection)
    connection.execute(f"UPDATE hookonce.failures SET {ago}")  # noqa: S608  this test's
    connection.execute("UPDATE hookonce.issues SET first_seen = now() - interval '2 days'")

    assert look(watch, connection) == expected


def test_watch_tells_once_of_an_issue_until_its_events_are_replayed_and_again_if_events_die(
    watch, connection
):
    dead = die_of(connection, "a", "b")
    looks = [look(watch, connection)]
    list(replay(connection, dead, "a test", again=True))
    looks.append(look(watch, connection))
    end_events(connection, "done", dead, attempts=2)
    looks += [look(watch, connection), look(watch, connection)]
    die_of(connection, "c")
    looks.append(look(watch, connection))

    assert looks == [[("new_issue", ID)], [("new_issue", ID)], [], [], [("new_issue", ID)]]
    assert told(connection) == [("alert.raised",), ("alert.resolved",), ("alert.raised",)]


GONE = {
    "fixed": lambda connection, _: issues.mark(connection, ID, IssueState.FIXED, "me"),
    "ignored": lambda connection, _: issues.mark(
        connection, ID, IssueState.IGNORED, "me", datetime.now(UTC) + timedelta(days=1)
    ),
    "discarded": lambda connection, dead: discards.discard(connection, dead, "me"),
    "replayed and done": lambda connection, dead: (
        list(replay(connection, dead, "me")),
        end_events(connection, "done", dead, attempts=2),
    ),
}


@pytest.mark.parametrize("what", GONE)
def test_watch_tells_nothing_of_an_issue_whose_cause_is_gone_before_it_looks(watch, connection, what):
    dead = die_of(connection, "a", "b")
    GONE[what](connection, dead)

    assert (look(watch, connection), told(connection)) == ([], [])


def test_one_broken_handler_is_one_alert_though_its_events_die_and_its_breaker_opens(watch, connection):
    die_of(connection, *(f"evt_{n}" for n in range(5)))
    desk.stop(connection, "shop.credit", 2)
    connection.execute("UPDATE hookonce.breakers SET opened_at = opened_at - interval '1 hour'")
    watch.evaluate(connection)
    raised = is_open(connection)
    issues.mark(connection, ID, IssueState.IGNORED, "me", datetime.now(UTC) + timedelta(days=1))
    connection.execute("DELETE FROM hookonce.breakers")
    look(watch, connection)

    assert raised == [("new_issue", ID)]
    assert (is_open(connection), told(connection)) == ([], [("alert.raised",), ("alert.resolved",)])


def test_dead_events_without_an_issue_are_told_of_beside_those_with_one(watch, connection):
    die_of(connection, "a", "b")
    died(connection, 2)

    watch.evaluate(connection)

    assert is_open(connection) == [("dead_runs", "stripe"), ("new_issue", ID)]


@pytest.mark.parametrize("with_text", [False, True])
def test_event_of_an_issue_names_it_and_quotes_its_error_only_if_asked(settings, connection, with_text):
    die_of(connection, "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ")
    chosen = replace(settings.alerts, with_text=with_text)
    known = replace(settings, alerts=chosen, console="https://inbox.example.com")

    with redis.Redis.from_url(settings.redis_url) as client:
        AlertWatcher(known, client).evaluate(connection)

    data = said(connection)[0]["data"]
    assert data["link"] == f"https://inbox.example.com/admin/issues/{ID}"
    assert data["issue"] == {
        "handler": "shop.credit",
        "error": "ValueError",
        "place": "shop/handlers.py:12",
        "failures": "1",
        "dead": "1",
        "release": "v1",
        **({"text": "ValueError: no such customer: [secret] (shop/handlers.py:12)"} if with_text else {}),
    }


def test_flood_of_alerts_is_ten_messages_an_hour_and_one_that_counts_the_rest(watch, connection):
    for n in range(25):
        happened(connection, f"source-{n}", "rejected.bad_signature", 30)
    watch.evaluate(connection)
    first = told(connection)
    happened(connection, "source-25", "rejected.bad_signature", 30)
    look(watch, connection)
    second = told(connection)
    connection.execute(
        "UPDATE hookonce.events SET received_at = received_at - interval '61 minutes', "
        "event_id = CASE type WHEN 'alert.rest' THEN %s ELSE event_id END WHERE source = 'hookonce'",
        [alerts.rest_id(datetime.now(UTC) - timedelta(minutes=61))],
    )
    connection.execute(
        "UPDATE hookonce.alerts SET since = since - interval '61 minutes' WHERE subject <> 'source-25'"
    )
    look(watch, connection)

    assert first == [("alert.raised",)] * 10 + [("alert.rest",)] == second
    counted = [each["data"]["number"] for each in said(connection) if each["type"] == "alert.rest"]
    assert sorted(counted) == [1, 15]


def test_watch_tells_nothing_of_an_issue_that_was_there_before(watch, connection):
    die_of(connection, "a")
    connection.execute("UPDATE hookonce.issues SET first_seen = now() - interval '2 days'")

    assert look(watch, connection) == []


def test_watch_tells_of_no_issue_where_that_is_off(settings, connection):
    die_of(connection, "a")

    with redis.Redis.from_url(settings.redis_url) as client:
        quiet = replace(settings, alerts=replace(settings.alerts, issues=False))
        assert look(AlertWatcher(quiet, client), connection) == []
