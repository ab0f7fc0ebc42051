import os
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
import redis

from jobs.watch import Watch
from receiver import database
from receiver.ledger import alerts
from receiver.sealing import Keyring
from receiver.settings import load_settings
from receiver.window import connect

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
        yield Watch(settings, client)


@pytest.fixture
def connection(database_url):
    with database.connect(database_url) as connection:
        look_again(connection)
        saw(connection, "stripe", timedelta(0))
        connection.execute("INSERT INTO activity VALUES (1, date_trunc('minute', now()), '', 'filled', 0)")
        yield connection


def look_again(connection):
    """Make it a turn, of a watch that has gone on for a year."""
    connection.execute(
        "UPDATE watching SET evaluated_at = now() - interval '1 minute', since = now() - interval '365 days'"
    )


def saw(connection, source, ago):
    """Note a delivery as it is counted: under the minute that it came in."""
    connection.execute(
        "INSERT INTO activity VALUES "
        "(0, 'epoch', %(s)s, 'last', extract(epoch FROM date_trunc('minute', now() - %(ago)s))) "
        "ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = excluded.count",
        {"s": source, "ago": ago},
    )


def happened(connection, source, what, number):
    connection.execute(
        "INSERT INTO activity VALUES (1, date_trunc('minute', now()), %s, %s, %s)", [source, what, number]
    )


def is_open(connection):
    return [(alert.kind, alert.subject) for alert in alerts.open_alerts(connection)]


def told(connection):
    return connection.execute("SELECT type FROM events WHERE source = 'hookonce' ORDER BY id").fetchall()


def test_watch_finds_nothing_wrong_with_a_quiet_inbox(watch, connection):
    assert watch.look(connection) == 0
    assert is_open(connection) == []


def test_watch_raises_an_alert_once_and_resolves_it_once(watch, connection):
    happened(connection, "github", "rejected.bad_signature", 30)
    for _ in range(3):
        look_again(connection)
        watch.look(connection)
    assert is_open(connection) == [("signature_failures", "github")]

    connection.execute("DELETE FROM activity WHERE what = 'rejected.bad_signature'")
    for _ in range(3):
        look_again(connection)
        watch.look(connection)

    assert is_open(connection) == []
    assert told(connection) == [("alert.raised",), ("alert.resolved",)]


def test_watch_seals_what_it_tells_where_bodies_are_sealed(settings, connection):
    keyring = Keyring([os.urandom(32)])
    happened(connection, "stripe", "dead", 2)

    with redis.Redis.from_url(settings.redis_url) as client:
        Watch(replace(settings, keyring=keyring), client).look(connection)

    assert connection.execute("SELECT key_id FROM bodies").fetchall() == [(keyring.first,)]


def test_watch_raises_what_it_can_not_seal_and_sends_nothing_in_the_clear(settings, connection):
    happened(connection, "stripe", "dead", 2)

    with redis.Redis.from_url(settings.redis_url) as client:
        Watch(replace(settings, keyring=Keyring([None])), client).look(connection)

    assert is_open(connection) == [("dead_runs", "stripe")]
    assert told(connection) == []


@pytest.mark.parametrize(
    ("source", "what", "number", "expected"),
    [
        ("stripe", "rejected.stale", 20, [("signature_failures", "stripe")]),
        ("stripe", "rejected.stale", 19, []),
        ("", "rejected.unknown_source", 1000, []),
        ("stripe", "dead", 2, [("dead_runs", "stripe")]),
        ("stripe", "dead", 1, []),
        ("hookonce", "dead", 100, []),
    ],
)
def test_watch_measures_what_happened_by_its_thresholds(watch, connection, source, what, number, expected):
    happened(connection, source, what, number)

    watch.look(connection)

    assert is_open(connection) == expected


@pytest.mark.parametrize(("pauses", "expected"), [((), [("oldest_due", "")]), (("stripe",), [])])
def test_watch_finds_an_event_that_nobody_takes_up(watch, connection, desk, pauses, expected):
    desk.deliver("a")
    connection.execute("UPDATE events SET due_at = now() - interval '6 minutes'")
    for name in pauses:
        connection.execute("INSERT INTO pauses (kind, name) VALUES ('source', %s)", [name])

    watch.look(connection)

    assert is_open(connection) == expected


def test_watch_misses_a_source_until_it_delivers_again(watch, connection):
    saw(connection, "stripe", timedelta(hours=3))
    watch.look(connection)
    assert is_open(connection) == [("source_silent", "stripe")]

    saw(connection, "stripe", timedelta(0))
    look_again(connection)
    watch.look(connection)

    assert is_open(connection) == []


@pytest.mark.parametrize(
    "circumstance",
    [
        "UPDATE watching SET since = now() - interval '1 hour'",
        "UPDATE watching SET evaluated_at = now() - interval '6 minutes'",  # then the outage was ours
        "DELETE FROM activity WHERE what = 'filled'",
    ],
)
def test_watch_blames_no_source_for_our_own_absence(watch, connection, circumstance):
    saw(connection, "stripe", timedelta(hours=3))
    connection.execute(circumstance)

    watch.look(connection)

    assert is_open(connection) == []


def test_watch_learns_when_a_source_is_never_silent(watch, connection):
    saw(connection, "github", timedelta(hours=4))
    connection.execute(
        "INSERT INTO activity SELECT 60, date_trunc('hour', now()) - n * interval '1 hour', 'github', 'accepted', 12 "
        "FROM generate_series(4, 24 * 50) AS n"
    )

    watch.look(connection)

    (alert,) = alerts.open_alerts(connection)
    assert (alert.kind, alert.subject) == ("source_silent", "github")
    assert "in each of the last" in alert.detail


def test_watch_reports_a_redis_that_takes_no_writes(watch, connection, settings):
    with redis.Redis.from_url(settings.redis_url) as client:
        client.set("other", 1)
        watch._client = Refusing()  # noqa: SLF001

    watch.look(connection)

    assert is_open(connection) == [("window_trouble", "redis")]


def test_watch_is_patient_with_a_redis_that_is_away(watch, connection):
    watch._client = connect("redis://127.0.0.1:1")  # noqa: SLF001
    watch.look(connection)
    assert is_open(connection) == []

    watch._away_since -= 61  # noqa: SLF001
    look_again(connection)
    watch.look(connection)

    assert is_open(connection) == [("redis_away", "redis")]


def test_watch_is_one_process_at_a_time(settings, connection, database_url):
    def look():
        with database.connect(database_url) as own, redis.Redis.from_url(settings.redis_url) as client:
            barrier.wait()
            changes.append(Watch(settings, client).look(own))

    happened(connection, "stripe", "dead", 5)
    barrier, changes = threading.Barrier(4, timeout=20), []
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(changes) == [0, 0, 0, 1]
    assert told(connection) == [("alert.raised",)]


class Refusing:
    def set(self, *_args, **_options):
        raise redis.exceptions.OutOfMemoryError("OOM command not allowed when used memory > 'maxmemory'.")
