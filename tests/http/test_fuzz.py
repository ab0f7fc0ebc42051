"""Any bytes, any headers: only documented answers from the receiver."""

import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookonce.providers import Reason
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from tests.http.conftest import CONFIGURATION, SECRETS, SENDERS
from tests.support.raw_http import request

DOCUMENTED = {200, 204, 400, 401, 404, 405, 408, 409, 413, 415, 503}
CODES = {*Reason, "conflict"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

names = st.sampled_from(
    [
        *("Stripe-Signature", "X-Hub-Signature-256", "X-GitHub-Event", "X-GitHub-Delivery", "X-Gitlab-Token"),
        *("X-Slack-Signature", "X-Slack-Request-Timestamp", "X-Signature", "X-Time", "Webhook-Signature"),
        *("Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Expect", "Connection"),
        *("Host", "Upgrade", "X-Forwarded-Proto", "SCRIPT_NAME", "Cookie", "Trailer", "TE"),
    ]
)
values = st.sampled_from(
    [
        *(
            "",
            "0",
            "36",
            "-1",
            "chunked",
            "identity",
            "gzip",
            "close",
            "100-continue",
            "h2c",
            "application/json",
        ),
        *("t=1,v1=" + "0" * 64, "sha256=" + "0" * 64, "v0=", "multipart/form-data", "9" * 30, "\x00", "a\rb"),
    ]
)
wild = st.text(st.characters(max_codepoint=255), max_size=40)
header_lists = st.lists(st.tuples(names | wild, values | wild), max_size=8)
targets = st.sampled_from(["/hooks/" + name for name in (*SENDERS, "keyless", "unknown")]) | wild
methods = st.sampled_from(["POST", "GET", "HEAD", "PUT", "OPTIONS", "TRACE", "post"]) | wild
odd_texts = st.text(max_size=20) | st.sampled_from(["\0", "\ud800", "\U0010ffff", "é" * 300, "x" * 3000])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | odd_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd_texts, inner, max_size=4),
    max_leaves=8,
)
FIELDS = ("id", "type", "event", "event_id", "account", "created", "object", "data", "payload", "timestamp")
events = st.dictionaries(st.sampled_from(FIELDS) | odd_texts, json_values, max_size=8)
bodies = st.binary(max_size=300) | (events | json_values).map(lambda value: json.dumps(value).encode())


GUNICORN_S_OWN = {414, 417, 431, 501}
"""How other workers refuse what is not HTTP."""


def documented(server, answer):
    """Check that an answer is one that docs/reference/http.md has; hanging up says nothing and is one too."""
    if answer is None:
        return
    if not server.is_ours:
        assert answer.status in DOCUMENTED | GUNICORN_S_OWN
        return
    assert answer.status in DOCUMENTED
    if answer.status != 200 and answer.body:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.code in CODES


@SHARED
@given(data=st.binary(max_size=2000))
def test_receiver_answers_any_bytes_as_documented(server, data):
    documented(server, server.exchange(data, half_close=True))


@SHARED
@given(method=methods, target=targets, headers=header_lists, body=st.binary(max_size=300))
def test_receiver_answers_any_request_as_documented(server, method, target, headers, body):
    data = request(method, target, headers, body)

    documented(server, server.exchange(data, half_close=True))


@SHARED
@given(
    source=st.sampled_from(sorted(SENDERS)),
    body=events.map(lambda value: json.dumps(value).encode()),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), st.binary(max_size=9)), max_size=3),
)
def test_receiver_answers_mangled_deliveries_as_documented(server, source, body, cuts):
    data = server.signed(body, source)
    for where, length, splice in cuts:
        start = int(where * len(data))
        data = data[:start] + splice + data[start + length :]

    documented(server, server.exchange(data, half_close=True))


@SHARED
@given(
    source=st.sampled_from(sorted(SENDERS)),
    sizes=st.lists(st.binary(min_size=1, max_size=6), max_size=6),
    data=st.binary(max_size=60),
)
def test_receiver_answers_any_chunks_as_documented(server, source, sizes, data):
    head = request(target=f"/hooks/{source}", headers={"Transfer-Encoding": "chunked"})
    body = b"".join(size + b"\r\n" + data + b"\r\n" for size in sizes)

    documented(server, server.exchange(head + body, half_close=True))


@pytest.fixture(scope="module")
def application(fresh_database, fresh_redis, tmp_path_factory):
    """The WSGI application in this process, on servers of its own."""
    directory = tmp_path_factory.mktemp("application")
    (directory / "hookonce.toml").write_text(CONFIGURATION.format(max_body=4096))
    with fresh_database() as database_url, fresh_redis() as redis_url:
        environ = {f"SECRET_{name.upper()}": secret for name, secret in SECRETS.items()}
        environ |= {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        app = create_app(load_settings(environ | {"HOOKONCE_CONFIG": str(directory / "hookonce.toml")}))
        yield app
        app.extensions["hookonce"].close()


def call(application, source, body, headers, method="POST"):
    """Call the application as a WSGI server would; give status and document."""
    said = []
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": f"/hooks/{source}",
        "SERVER_NAME": "test",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.errors": io.StringIO(),
        "wsgi.input": io.BytesIO(body),
        "CONTENT_LENGTH": str(len(body)),
    }
    environ |= {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}
    reply = b"".join(application(environ, lambda status, _headers, _error=None: said.append(int(status[:3]))))
    return said[0], json.loads(reply or "{}")


def signed(source, body):
    return SENDERS[source].sign(body, SECRETS[source], datetime.now(UTC))


@SHARED
@given(
    source=st.sampled_from(sorted(SENDERS)),
    body=bodies,
    headers=st.dictionaries(names, values | wild, max_size=4),
)
def test_application_answers_signed_bodies_as_documented(application, source, body, headers):
    unframed = {name: value for name, value in headers.items() if not name.startswith("Content-")}

    status, document = call(application, source, body, unframed | signed(source, body))

    assert status in DOCUMENTED
    assert document.get("code", "conflict") in CODES


@SHARED
@given(source=st.sampled_from(["stripe", "slack", "shopify", "partner"]), event=events)
def test_application_knows_again_whatever_it_accepted(application, source, event):
    body = json.dumps(event).encode()
    first, _ = call(application, source, body, signed(source, body))

    again, document = call(application, source, body, signed(source, body))

    assert again == first
    assert first != 200 or document["status"] == "duplicate"
