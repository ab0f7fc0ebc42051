"""A key goes by https to the hosts that it is for, and what comes back is bounded."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hookonce.providers.kit.calls import CallFailed, Request
from hookonce.receiver.outbound import api_calls
from tests.support.attacks import certificate

KEY = {"authorization": "Bearer rk_test_secret"}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(dict(self.headers))
        status, headers, body = self.server.answers.pop(0)
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server on loopback whose certificate is trusted; it has the answers it is given."""
    context = certificate.serving(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "cert.pem"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads, server.seen, server.answers = True, [], []
    server.host = f"127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def call(server, url=None):
    return api_calls.call(Request("GET", url or f"https://{server.host}/v1/events", KEY), [server.host])


def test_answer_is_returned_whole_whatever_its_status(server):
    server.answers += [(404, {"X-Sent": "a"}, b"{}")]

    answer = call(server)

    assert (answer.status, answer.headers["x-sent"], answer.body) == (404, "a", b"{}")
    assert server.seen[0]["authorization"] == KEY["authorization"]


def test_redirect_inwards_is_not_followed(server):
    server.answers += [(302, {"location": f"https://{server.host}/inside"}, b"")]

    assert call(server).status == 302
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://{host}/v1/events",
        "https://127.0.0.2/v1/events",
        "https://{host}@evil.example/",
        "https://user@{host}/",
        "https://{host}.evil.example/",
    ],
)
def test_nothing_is_sent_to_another_address(server, url):
    with pytest.raises(CallFailed) as raised:
        call(server, url.format(host=server.host))

    assert "nothing was sent" in str(raised.value)
    assert not server.seen


@pytest.mark.parametrize(
    ("headers", "body", "told"),
    [
        ({}, b"a" * 5000, "more than 4000 bytes"),
        ({"content-length": "9000"}, b"a" * 10, "cut off|did not answer"),
    ],
)
def test_answer_that_is_too_long_or_cut_fails(server, monkeypatch, headers, body, told):
    monkeypatch.setattr(api_calls, "MAX_ANSWER", 4000)
    server.answers += [(200, headers, body)]

    with pytest.raises(CallFailed, match=told) as raised:
        call(server)

    assert "rk_test_secret" not in str(raised.value)


def test_certificate_that_is_not_trusted_fails(server, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")

    with pytest.raises(CallFailed, match="did not answer: SSLError"):
        call(server)

    assert not server.seen
