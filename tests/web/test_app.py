import hashlib
import hmac
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.intake import verification
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.stats import totals
from tests.support.waiting import until

SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ"
CONFIG = """
[sources.stripe]
provider = "stripe"
secrets = ["env:STRIPE"]
[sources.strict]
provider = "stripe"
secrets = ["env:STRIPE"]
conflicts = "reject"
[sources.github]
provider = "github"
secrets = ["env:GITHUB"]
[sources.careful]
provider = "github"
secrets = ["env:GITHUB"]
repeats = "hold"
[sources.bare]
provider = "stripe"
secrets = ["env:NOTHING?"]
"""


@pytest.fixture
def client(tmp_path, database_url, redis_url):
    (tmp_path / "hookonce.toml").write_text(CONFIG)
    environ = {
        "STRIPE": SECRET,
        "GITHUB": "gh-secret",
        "HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"),
    }
    environ |= {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
    app = create_app(load_settings(environ))
    yield app.test_client(use_cookies=False)
    app.extensions["hookonce"].close()


@pytest.fixture
def query(database_url):
    with connections.connect(database_url) as connection:
        yield lambda statement: connection.execute(statement).fetchall()


def stripe(client, body=b'{"id": "evt_1", "type": "invoice.paid"}', *, secret=SECRET, source="stripe"):
    at = str(int(time.time()))
    signature = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return client.post(f"/hooks/{source}", data=body, headers={"Stripe-Signature": f"t={at},v1={signature}"})


def github(client, delivery, body=b'{"zen": 1}', source="github"):
    signature = hmac.new(b"gh-secret", body, hashlib.sha256).hexdigest()
    headers = {
        "X-Hub-Signature-256": f"sha256={signature}",
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": "ping",
    }
    return client.post(f"/hooks/{source}", data=body, headers=headers | {"Content-Type": "application/json"})


def test_app_accepts_once_and_says_duplicate_after(client):
    first, again = stripe(client), stripe(client)

    assert (first.status_code, first.json) == (
        200,
        {"status": "accepted", "events": [{"event_id": "evt_1", "status": "accepted"}]},
    )
    assert (again.status_code, again.json["status"]) == (200, "duplicate")
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (
        None,
        "true",
    )


def test_app_keeps_a_long_url_and_a_type_that_sounds_unreadable(client, query):
    query_string = "x" * 2000
    body = b'{"id": "evt_1", "type": "unreadable"}'
    at = str(int(time.time()))
    signature = hmac.new(SECRET.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()

    client.post(
        f"/hooks/stripe?{query_string}", data=body, headers={"Stripe-Signature": f"t={at},v1={signature}"}
    )

    assert query(
        "SELECT e.status, right(b.url, 2001) FROM hookonce.event_states e JOIN hookonce.bodies b ON b.event = e.id"
    ) == [("received", f"?{query_string}")]


def test_app_calls_a_retry_with_another_counter_a_duplicate(client, query):
    stripe(client, b'{"id": "evt_1", "type": "a", "pending_webhooks": 2}')

    assert (
        stripe(client, b'{"id": "evt_1", "type": "a", "pending_webhooks": 1}').json["status"] == "duplicate"
    )
    assert query("SELECT count(*) FROM hookonce.conflicts") == [(0,)]


@pytest.mark.parametrize(("source", "status"), [("stripe", 200), ("strict", 409)])
def test_app_keeps_another_body_under_a_known_id_as_a_conflict(client, query, source, status):
    stripe(client, b'{"id": "evt_1", "type": "a"}', source=source)

    answer = stripe(client, b'{"id": "evt_1", "type": "b"}', source=source)

    assert answer.status_code == status
    assert query("SELECT body FROM hookonce.conflicts") == [(b'{"id": "evt_1", "type": "b"}',)]
    assert query("SELECT type FROM hookonce.event_states") == [("a",)]


def test_app_runs_a_repeat_unless_the_source_holds_it(client, query):
    answers = [
        github(client, delivery, source=source).json for source in ("github", "careful") for delivery in "ab"
    ]

    assert [answer["events"][0]["status"] for answer in answers] == [
        "accepted",
        "accepted",
        "accepted",
        "held",
    ]
    assert [answer["status"] for answer in answers] == ["accepted"] * 4
    assert query(
        "SELECT source, status FROM hookonce.event_states WHERE repeat_of IS NOT NULL ORDER BY 1"
    ) == [
        ("careful", "held"),
        ("github", "received"),
    ]


def test_app_asks_the_sender_to_retry_while_a_secret_is_missing(client):
    answer = stripe(client, source="bare")

    assert (answer.status_code, answer.json["code"]) == (503, "no_secret")
    assert answer.headers["Retry-After"]


def test_app_notes_a_forged_delivery_without_storing_it(client, query):
    answer = stripe(client, secret="whsec_forged")

    assert (answer.status_code, answer.content_type) == (401, "application/problem+json")
    assert answer.json["code"] == "bad_signature"
    until(
        lambda: query("SELECT source, reason, count FROM hookonce.rejections"),
        [("stripe", "bad_signature", 1)],
    )
    assert query("SELECT source, reason, body_prefix FROM hookonce.rejected") == [
        ("stripe", "bad_signature", b'{"id": "evt_1", "type": "invoice.paid"}')
    ]
    assert query("SELECT count(*) FROM hookonce.event_states") == [(0,)]


def test_app_tells_prometheus_the_rest_when_counting_events_takes_too_long(client, monkeypatch):
    def too_long(_):
        raise psycopg.errors.QueryCanceled

    monkeypatch.setattr(totals, "event_sums", too_long)

    page = client.get("/metrics").text

    assert 'hookonce_up{server="postgresql"} 1.0' in page
    assert "hookonce_oldest_due_seconds 0.0" in page


def test_app_counts_redeliveries(client, query):
    for _ in range(4):
        stripe(client)

    until(lambda: query("SELECT deliveries FROM hookonce.event_states"), [(4,)])


def test_app_keeps_more_events_in_one_delivery_than_the_ledger_takes_in_time_as_one(
    client, query, monkeypatch
):
    monkeypatch.setattr(verification, "MAX_EVENTS", 0)

    assert stripe(client).status_code == 200

    assert query("SELECT type, status FROM hookonce.event_states") == [("unreadable", "dead")]


def test_app_masks_credentials_in_what_it_keeps(client, query):
    body = b'{"id": "evt_1", "type": "a"}'
    at = str(int(time.time()))
    signature = hmac.new(SECRET.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    headers = {
        "Stripe-Signature": f"t={at},v1={signature}",
        "Authorization": "Bearer abc",
        "Cookie": "session=1",
        "X-Leak": f"see {SECRET}",
    }

    client.post("/hooks/stripe", data=body, headers=headers)

    ((kept,),) = query("SELECT headers FROM hookonce.bodies")
    assert {kept["authorization"], kept["cookie"], kept["x-leak"]} == {"[secret]"}
    assert SECRET not in json.dumps(kept)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/livez", 200), ("/readyz", 200), ("/metrics", 200), ("/", 404), ("/hooks/nope", 404)],
)
def test_app_answers_operators(client, path, status):
    assert client.get(path).status_code == status


def test_app_looks_once_for_all_who_ask_meanwhile(client, monkeypatch):
    under_way, most, asked, everybody = [], [], [], threading.Event()

    def look(_settings):
        under_way.append(None)
        most.append(len(under_way))
        assert everybody.wait(10)
        under_way.pop()
        return 200, {}

    def ask(_):
        asked.append(None)
        if len(asked) == 8:
            threading.Timer(0.1, everybody.set).start()  # by then most of them wait
        return client.application.test_client().get("/readyz").status_code

    monkeypatch.setattr("hookonce.receiver.app.health.Readiness.look", look)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))

    assert answers == [200] * 8
    assert most == [1]


def test_app_tells_prometheus_what_it_holds(client):
    stripe(client)

    page = client.get("/metrics").text

    assert 'hookonce_events{source="stripe",status="received"} 1.0' in page
    assert "hookonce_oldest_due_seconds" in page
    assert "hookonce_window_breaker_open 0.0" in page
