import contextlib
import socket
import time
from datetime import timedelta

import pytest

from hookonce.receiver.remote import client as module
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.errors import Refused, RemoteError, Unreachable
from hookonce.receiver.remote.profiles import Profile
from tests.support.odd_server import answering, reply

TOKEN = "hko_" + "b" * 43
GOOD = reply(200, b'{"a": 1}')


def client_of(server):
    return Client(Profile("prod", server.url, TOKEN))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "pause", lambda *_: timedelta(0))


def asked(*answers, tries=1):
    """Ask a server that answers so; return what it gave or refused, and the server."""
    with answering(*answers) as server:
        try:
            return client_of(server).get("/feed", tries=tries), server
        except RemoteError as error:
            return error, server


def test_token_goes_in_a_header_and_the_query_is_encoded():
    with answering(GOOD) as server:
        assert client_of(server).get("/events", type="invoice.*", source=None) == {"a": 1}

    (head,) = server.asked
    assert head.startswith(b"GET /api/v1/events?type=invoice.%2A HTTP/1.1\r\n")
    assert f"Authorization: Bearer {TOKEN}\r\n".encode() in head


def test_netrc_and_proxies_of_the_environment_are_not_for_this_machine(tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ada password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    answer, server = asked(GOOD)

    assert answer == {"a": 1}
    assert b"Authorization: Bearer" in server.asked[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (reply(200, b"<html>Sign in</html>", "text/html"), "is no inbox (200, text/html)"),
        (reply(200, b"<html>", "application/json"), "is no inbox"),
        (reply(200, b"[]"), "is no inbox"),
        (reply(200, b"[" * 100_000), "is no inbox"),
        (reply(200, b'{"a": "\xff"}'), "is no inbox"),
        (reply(404, b"nothing here", "text/plain"), "is no inbox (404, text/plain)"),
        (reply(302, Location="http://elsewhere.example/x"), "redirects to elsewhere.example"),
        (reply(301, Location="/in\x1b[2J"), "redirects to another path"),
        (
            reply(401, b'{"code": "unauthorized", "detail": "the token is unknown"}'),
            "the token is unknown (401)",
        ),
        (
            reply(
                403,
                b'{"code": "forbidden", "detail": "the token \'ada\' lacks the scope bodies"}',
                WWW_Authenticate='Bearer realm="hookonce", error="insufficient_scope", scope="bodies"',
            ),
            "the token 'ada' lacks the scope bodies (403)",
        ),
        (reply(400, b'{"detail": "\\u001b[31mred\\u001b[0m"}'), ": ?[31mred?[0m (400)"),
        (
            reply(422, b'{"detail": "no", "errors": [{"parameter": "limit", "detail": "too many"}]}'),
            "no (hookonce of another version answers there) (422)",
        ),
    ],
)
def test_answer_that_would_come_again_is_refused_on_one_line(answer, said):
    refused, server = asked(answer, tries=3)

    assert isinstance(refused, Refused)
    assert said in str(refused)
    assert str(refused).isprintable()
    assert TOKEN not in str(refused)
    assert len([head for head in server.asked if b"/feed" in head]) == 1


@pytest.mark.parametrize(
    "answer",
    [
        reply(502, b"<html>Bad Gateway</html>", "text/html"),
        reply(503, b'{"detail": "PostgreSQL does not answer"}', Retry_After="1"),
        reply(429, b'{"detail": "too many requests"}', Retry_After="99999999999999"),
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\nzz\r\n",
    ],
)
def test_answer_that_may_be_another_next_time_is_asked_for_again(answer):
    assert asked(answer, answer, GOOD, tries=3)[0] == {"a": 1}

    gone, _ = asked(answer, tries=2)
    assert isinstance(gone, Unreachable)
    assert gone.wait <= module.LONGEST_WAIT


def test_version_of_another_hookonce_is_told():
    unknown = reply(
        404, b'{"code": "not_found", "detail": "there is no such path; /api/v1/openapi.json has all"}'
    )

    refused, _ = asked(unknown, reply(200, b'{"info": {"version": "0.1.7"}}'))

    assert "hookonce 0.1.7 answers there" in str(refused)


def test_answer_without_an_end_is_given_up_at_a_length(monkeypatch):
    monkeypatch.setattr(module, "LONGEST_ANSWER", 1 << 20)

    def endless(connection):
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while True:
                connection.sendall(b" " * 65_536)

    refused, _ = asked(endless)

    assert "longer than 1 MiB" in str(refused)


def test_answer_that_comes_byte_by_byte_is_given_up_in_time(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_TIMEOUT", timedelta(seconds=0.5))

    def drip(connection):
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(b"H")
                time.sleep(0.01)

    began = time.monotonic()
    gone, _ = asked(drip)

    assert isinstance(gone, Unreachable)
    assert time.monotonic() - began < 10


def test_refused_port_is_one_line_without_the_token():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

    with pytest.raises(Unreachable, match=r"does not answer: ConnectionError") as gone:
        Client(Profile("prod", url, TOKEN)).get("/token", tries=1)

    assert TOKEN not in repr(gone.value)
    assert gone.value.__cause__ is None


def test_post_is_repeated_under_one_key():
    with answering(reply(503, b"{}"), reply(202, b'{"status": "in_progress"}'), GOOD) as server:
        assert client_of(server).post("/pulls", {"source": "stripe"}) == {"a": 1}

    keys = {
        line for head in server.asked for line in head.split(b"\r\n") if line.startswith(b"Idempotency-Key")
    }
    assert (len(server.asked), len(keys)) == (3, 1)
