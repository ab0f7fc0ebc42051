"""Senders whose keys are fetched, and senders that prove nothing, over HTTP against the whole receiver."""

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest
import responses

from hookonce.providers.kit.registry import load
from hookonce.receiver.app import create_app
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections
from tests.support.waiting import until

CASES = Path(__file__).parents[1] / "providers"
PATH_SECRET = "path-secret-0123456789"
TOPIC = "arn:aws:sns:us-west-2:123456789012:MyTopic"
CERTIFICATE = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-test.pem"
CONFIRMATION = "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=tok1"
CONFIG = f"""
[sources.sns]
provider = "amazon_sns"
[sources.sns.amazon_sns]
topics = ["{TOPIC}"]
[sources.hub]
provider = "docker_hub"
secrets = ["env:HUB", "env:HUB_OLD?"]
[sources.open]
provider = "docker_hub"
unauthenticated = true
[sources.brevo]
secrets = ["env:BREVO"]
[sources.stripe]
secrets = ["env:STRIPE"]
[sources.cloudevents]
secrets = ["env:BREVO"]
"""
PUSH = json.dumps({"push_data": {"pushed_at": 1, "tag": "a"}, "repository": {"repo_name": "o/r"}})


@pytest.fixture
def environ(tmp_path, database_url, redis_url):
    (tmp_path / "hookonce.toml").write_text(CONFIG)
    secrets = {
        "HUB": PATH_SECRET,
        "HUB_OLD": "path-secret-of-before",
        "BREVO": "brevo-token-0123",
        "STRIPE": "whsec_x",
    }
    where = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
    return secrets | where | {"HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml")}


@pytest.fixture
def client(environ):
    app = create_app(load_settings(environ))
    yield app.test_client(use_cookies=False)
    app.extensions["hookonce"].close()


@pytest.fixture
def web():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture
def rows(database_url):
    with connections.connect(database_url) as connection:
        yield lambda statement: connection.execute(statement).fetchall()


def case(name):
    return json.loads((CASES / "amazon_sns" / f"{name}.json").read_text())


def message(**fields):
    """An SNS message of now, and the certificate of its key."""
    own = case("own-key")
    made = load("amazon_sns", options={"topics": []}).deliver(
        json.dumps({"MessageId": "m-1", **fields}).encode(), own["signing_secret"], datetime.now(UTC)
    )
    return made.body, next(iter(own["keys"].values()))


def test_sns_message_is_accepted_with_a_fetched_certificate(client, web):
    body, certificate = message()
    web.get(CERTIFICATE, body=certificate)

    answers = [client.post("/hooks/sns", data=body).get_json()["status"] for _ in range(2)]

    assert answers == ["accepted", "duplicate"]
    assert len(web.calls) == 1


def test_sns_message_asks_to_come_again_when_the_certificate_can_not_be_had(client, web, rows):
    body, _ = message()
    web.get(CERTIFICATE, status=500)

    answer = client.post("/hooks/sns", data=body)

    assert (answer.status_code, answer.get_json()["code"]) == (503, "key_unavailable")
    assert answer.headers["Retry-After"]
    assert rows("SELECT * FROM hookonce.event_states") == []


def test_sns_message_of_a_foreign_topic_fetches_nothing(client, web):
    body, certificate = message()
    web.get(CERTIFICATE, body=certificate)

    answer = client.post("/hooks/sns", data=body.replace(b"MyTopic", b"Another"))

    assert (answer.status_code, answer.get_json()["code"]) == (401, "bad_signature")
    assert not web.calls


def test_sns_subscription_is_confirmed_by_a_fetch_and_stored_nowhere(client, web, rows):
    probe = case("confirmation")
    web.get(CERTIFICATE, body=probe["keys"][CERTIFICATE])
    web.get(CONFIRMATION, body="<ConfirmSubscriptionResponse/>")

    answer = client.post("/hooks/sns", data=probe["body"])

    assert answer.status_code == 200
    assert [call.request.url for call in web.calls] == [CERTIFICATE, CONFIRMATION]
    assert rows("SELECT * FROM hookonce.event_states") == []


def test_sns_subscription_that_is_forged_or_foreign_is_not_confirmed(client, web):
    probe = case("confirmation")
    web.get(CERTIFICATE, body=probe["keys"][CERTIFICATE])
    web.get(CONFIRMATION, body="<ConfirmSubscriptionResponse/>")
    elsewhere = CONFIRMATION.replace("us-west-2.amazonaws.com", "us-west-2.amazonaws.com.evil.example")

    forged = [
        probe["body"].replace("tok1", "tok2"),
        probe["body"].replace("MyTopic", "Another"),
        probe["body"].replace(CONFIRMATION, elsewhere),
    ]

    assert [client.post("/hooks/sns", data=body).status_code for body in forged] == [401, 401, 401]
    assert {call.request.url for call in web.calls} <= {CERTIFICATE}


def test_sns_subscription_asks_to_come_again_when_the_confirmation_fails(client, web):
    probe = case("confirmation")
    web.get(CERTIFICATE, body=probe["keys"][CERTIFICATE])
    web.get(CONFIRMATION, status=403)

    answer = client.post("/hooks/sns", data=probe["body"])

    assert (answer.status_code, answer.get_json()["code"]) == (503, "key_unavailable")


@pytest.mark.parametrize("secret", [PATH_SECRET, "path-secret-of-before"])
def test_sender_without_proof_is_accepted_with_a_secret_in_the_path(client, secret):
    answer = client.post(f"/hooks/hub/{secret}", data=PUSH)

    assert (answer.status_code, answer.get_json()["status"]) == (200, "accepted")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/hooks/hub", 401, "missing_header"),
        ("/hooks/hub/", 404, "unknown_source"),
        ("/hooks/hub/wrong", 401, "bad_signature"),
        (f"/hooks/hub/{PATH_SECRET}x", 401, "bad_signature"),
        (f"/hooks/hub/{PATH_SECRET}/", 401, "bad_signature"),
        (f"/hooks/hub/{PATH_SECRET}%00", 401, "bad_signature"),
        ("/hooks/hub/%FF%FE", 401, "bad_signature"),
        (f"/hooks/hub?secret={PATH_SECRET}", 401, "missing_header"),
        ("/hooks/stripe/whsec_x", 404, "unknown_source"),
        (f"/hooks/open/{PATH_SECRET}", 404, "unknown_source"),
        (f"/hooks/nobody/{PATH_SECRET}", 404, "unknown_source"),
    ],
)
def test_other_paths_are_refused(client, path, status, code):
    answer = client.post(path, data=PUSH)

    assert (answer.status_code, answer.get_json()["code"]) == (status, code)


def test_secret_in_the_path_is_neither_logged_nor_stored(client, rows, caplog):
    caplog.set_level(logging.DEBUG)

    client.post(f"/hooks/hub/{PATH_SECRET}", data=PUSH)
    client.post(f"/hooks/hub/{PATH_SECRET}x", data=PUSH)
    client.post(f"/hooks/hub/{PATH_SECRET}", data="{")

    kept = rows(
        "SELECT e::text, b::text FROM hookonce.event_states e JOIN hookonce.bodies b ON b.event = e.id"
    )
    until(lambda: rows("SELECT count(*) FROM hookonce.rejected"), [(1,)])
    noted = rows("SELECT r::text FROM hookonce.rejected r")
    assert (len(kept), len(noted)) == (2, 1)
    assert PATH_SECRET not in repr(kept) + repr(noted)
    assert PATH_SECRET not in caplog.text


def test_source_that_anyone_may_send_to_takes_everything_that_is_readable(client):
    answers = [client.post("/hooks/open", data=body).status_code for body in (PUSH, "{")]

    assert answers == [200, 400]


def test_token_sender_may_bring_its_token_in_the_path(client):
    body = json.dumps({"event": "delivered", "email": "a@b.c", "message-id": "<1>", "ts_event": 1})

    answers = [
        client.post("/hooks/brevo/brevo-token-0123", data=body).status_code,
        client.post("/hooks/brevo/brevo-token-9999", data=body).status_code,
        client.post(
            "/hooks/brevo", data=body, headers={"Authorization": "Bearer brevo-token-0123"}
        ).status_code,
    ]

    assert answers == [200, 401, 200]


def test_probe_by_options_is_answered_and_any_other_by_the_methods(client):
    probe = client.options("/hooks/cloudevents", headers={"WebHook-Request-Origin": "a.example"})
    odd = client.options("/hooks/cloudevents", headers={"Authorization": "Bearer brevo-token-0123"})

    assert (probe.status_code, probe.headers["WebHook-Allowed-Origin"]) == (200, "a.example")
    assert (odd.status_code, client.options("/hooks/stripe").status_code) == (204, 204)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ('provider = "docker_hub"', "unauthenticated = true"),
        ('provider = "stripe"\nsecrets = ["env:STRIPE"]\nunauthenticated = true', "remove that"),
        ('provider = "docker_hub"\nsecrets = ["env:SHORT"]', "16 to 200"),
        ('provider = "amazon_sns"\n[sources.x.amazon_sns]\ntopics = ["name"]', "arn:aws:sns"),
        (
            'provider = "plaid"\nsecrets = ["env:STRIPE"]\n[sources.x.plaid]\nenvironment = "live"',
            "production, sandbox",
        ),
    ],
)
def test_configuration_says_what_a_right_one_looks_like(environ, lines, complaint):
    Path(environ["HOOKONCE_CONFIG"]).write_text(f"[sources.x]\n{lines}\n")

    with pytest.raises(ConfigError, match=complaint):
        load_settings(environ | {"SHORT": "short"})
