import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hookonce.jobs.configured import forwards
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.ledger.steps import idempotency_key
from hookonce.receiver.outbound.brokers import endpoint as endpoints
from hookonce.receiver.outbound.brokers.port import Away, Refused
from tests.support.attacks import certificate
from tests.support.forwarding import SECRET, configured, errors, forward, results, work

KEY = idempotency_key("stripe", "a", "forwards.out")
BODY = json.dumps({"id": "a", "type": "invoice.paid", "object": "event"}).encode()
HOME = {"sign": "as sender", "allow_private": True}


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["content-length"])
        self.server.came.append((dict(self.headers), self.rfile.read(length), self.path))
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        for part, answer in self.server.answers_to.items():
            status, headers = answer if part in self.server.came[-1][1] else (status, headers)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint(tmp_path, monkeypatch):
    context = certificate.serving(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.came, server.answers, server.answers_to = [], [], {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "cert.pem"))
    server.url = f"https://localhost:{server.server_port}/hooks/stripe"
    yield server
    server.shutdown()
    server.server_close()


def verified(provider, secret, came):
    headers, body, _ = came
    lowered = {name.lower(): value for name, value in headers.items()}
    load(provider).verify(Delivery("POST", "", lowered, body), [secret], datetime.now(UTC))
    return lowered


def test_event_is_signed_as_standard_webhooks_say_under_the_run_s_id(inbox, tmp_path, endpoint):
    signed = forward(endpoint.url, secret="env:FORWARD_SECRET", allow_private=True)
    configured(inbox, tmp_path, signed)
    inbox.deliver("a", body=BODY)

    work(inbox)

    (came,) = endpoint.came
    headers = verified("standard_webhooks", SECRET, came)
    assert came[1] == BODY
    assert headers["webhook-id"] == f"{KEY}-1"
    assert headers["ce-id"] == "a"
    assert results(inbox) == {"a": ("done", None)}


def test_event_is_signed_as_its_sender_would(inbox, tmp_path, endpoint):
    configured(inbox, tmp_path, forward(endpoint.url, **HOME))
    inbox.deliver("a", body=BODY, headers=json.dumps({"user-agent": "Stripe/1.0", "ce-id": "forged"}))

    work(inbox)

    headers = verified("stripe", "whsec_test", endpoint.came[0])
    assert headers["user-agent"] == "Stripe/1.0"
    assert headers["ce-id"] == "a"  # what is not signed may be anybody's
    assert "hookonce-via" in headers


def test_private_address_is_refused_unless_it_is_allowed(inbox, tmp_path, endpoint):
    configured(inbox, tmp_path, forward(endpoint.url, sign="as sender", attempts=1))
    inbox.deliver("a", body=BODY)

    work(inbox)

    assert "localhost has a private address" in errors(inbox)["a"]
    assert not endpoint.came


PRIVATE = [
    "10.0.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "::1",
    "fd00::1",
    "::ffff:10.0.0.1",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "64:ff9b::c000:c0",
    "192.0.0.192",
    "::7f00:1",
    "::ffff:0:7f00:1",
    "2002:7f00:1::",
    "fec0::1",
    "3fff::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_name_with_one_private_address_among_others_is_refused(monkeypatch, address):
    found = [(0, 0, 0, "", (each, 443)) for each in ("93.184.215.14", address)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    outcome = endpoints.post("https://shop.example/", {}, b"", allow_private=False)

    assert isinstance(outcome, Refused)
    assert "private address" in str(outcome)


def test_other_addresses_of_a_name_are_tried_where_the_first_does_not_connect(endpoint, monkeypatch):
    real = socket.getaddrinfo

    def resolve(host, *rest, **options):
        if host != "localhost":
            return real(host, *rest, **options)
        return [(0, 0, 0, "", (each, 443)) for each in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    assert endpoints.post(endpoint.url, {}, b"", allow_private=True) is None
    assert len(endpoint.came) == 1


def test_public_address_in_nat64_is_public(monkeypatch):
    found = [(0, 0, 0, "", ("64:ff9b::808:808", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    outcome = endpoints.post("http://shop.example/", {}, b"", allow_private=True)

    assert isinstance(outcome, Refused)
    assert "has a public address" in str(outcome)


@pytest.mark.parametrize(("said", "seconds"), [("7", 7), (" 0 ", 0), ("\u00b2", None), ("\u0667", None)])
def test_retry_after_is_seconds_of_ascii(said, seconds):
    assert endpoints.seconds_of(said, 0) == seconds


def test_name_is_resolved_once_and_the_certificate_is_checked_for_it(endpoint, monkeypatch):
    asked = []
    real = socket.getaddrinfo

    def resolve(host, *rest, **options):
        asked.append(host)
        return real("127.0.0.1" if host == "shop.example" else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    outcome = endpoints.post(f"https://shop.example:{endpoint.server_port}/", {}, b"", allow_private=True)

    assert isinstance(outcome, Away)
    assert "SSLError" in str(outcome) or "Certificate" in str(outcome)
    assert asked.count("shop.example") == 1
    assert not endpoint.came


def test_answer_410_is_dead(inbox, tmp_path, endpoint):
    configured(inbox, tmp_path, forward(endpoint.url, **HOME))
    endpoint.answers.append((410, {}))
    inbox.deliver("a", body=BODY)

    work(inbox)

    assert results(inbox)["a"][0] == "dead"
    assert "answered 410" in errors(inbox)["a"]
    assert len(endpoint.came) == 1


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        ((429, {}), 60),
        ((429, {"retry-after": "7"}), 7),
        ((429, {"retry-after": "0"}), 1),
        ((503, {"retry-after": "120"}), 120),
    ],
)
def test_endpoint_that_asks_to_wait_costs_no_attempt(inbox, tmp_path, endpoint, answer, seconds):
    configured(inbox, tmp_path, forward(endpoint.url, **HOME))
    endpoint.answers.append(answer)
    inbox.deliver("a", body=BODY)
    inbox.work()

    ((wait,),) = inbox.rows("SELECT extract(epoch FROM due_at - now())::float FROM hookonce.queue")
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 s'")
    work(inbox)

    assert max(0, seconds - 5) < wait <= seconds
    assert inbox.rows("SELECT status, attempts FROM hookonce.runs") == [("done", 1)]


@pytest.mark.parametrize("status", [301, 302, 400, 404, 500])
def test_answer_that_is_no_success_is_a_failed_attempt(inbox, tmp_path, endpoint, status):
    configured(inbox, tmp_path, forward(endpoint.url, attempts=1, **HOME))
    endpoint.answers.append((status, {"location": endpoint.url, "retry-after": "0"}))
    inbox.deliver("a", body=BODY)

    work(inbox)

    assert results(inbox)["a"][0] == "dead"
    assert f"answered {status}; expected 2xx" in errors(inbox)["a"]
    assert len(endpoint.came) == 1


@pytest.mark.parametrize("answer", [(502, {}), (503, {"retry-after": "0"}), (504, {})])
def test_event_that_never_gets_an_answer_is_charged_though_others_do(
    inbox, tmp_path, endpoint, monkeypatch, answer
):
    monkeypatch.setattr(forwards, "PATIENCE", timedelta(0))
    configured(inbox, tmp_path, forward(endpoint.url, attempts=2, **HOME))
    endpoint.answers_to[b"poison"] = answer
    inbox.deliver("a", body=b'{"id": "poison"}')

    for n in range(4):
        inbox.deliver(f"good{n}", body=BODY)
        inbox.work()
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 s'")

    assert results(inbox)["a"][0] == "dead"
    assert {status for name, (status, _) in results(inbox).items() if name != "a"} == {"done"}


@pytest.mark.parametrize("others", [[], ["good0", "good1", "good2"]], ids=["alone", "beside others"])
def test_endpoint_that_only_asks_to_wait_is_charged_in_the_end(
    inbox, tmp_path, endpoint, monkeypatch, others
):
    monkeypatch.setattr(forwards, "BUSY_PATIENCE", timedelta(0))
    configured(inbox, tmp_path, forward(endpoint.url, attempts=2, **HOME))
    endpoint.answers_to[b"poison"] = (429, {"retry-after": "1"})
    inbox.deliver("a", body=b'{"id": "poison"}')

    for other in others or [None] * 3:
        if other:
            inbox.deliver(other, body=BODY)
        inbox.work()
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 s'")

    assert inbox.rows("SELECT attempts FROM hookonce.queue") == ([(0,)] if others else [])
    assert (results(inbox).get("a", [""])[0] == "dead") != bool(others)


def test_endpoint_that_is_away_after_it_was_busy_has_its_time(inbox, tmp_path, endpoint, monkeypatch, caplog):
    monkeypatch.setattr(forwards, "PATIENCE", timedelta(0))
    configured(inbox, tmp_path, forward(endpoint.url, **HOME))
    endpoint.answers += [(429, {}), (429, {}), (503, {})]
    inbox.deliver("a", body=BODY)

    for _ in range(3):
        inbox.work()
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 s'")

    assert (len(endpoint.came), inbox.rows("SELECT attempts FROM hookonce.queue")) == (3, [(0,)])
    assert [each.levelname for each in caplog.records if "answered 503" in each.message] == ["WARNING"]


OWN = 'repeats = "run"\n[sources.shop.hmac]\nheader = "x-signature"\nid = "header:ce-id"\ntype = "header:ce-type"\n'


@pytest.mark.parametrize(
    ("provider", "options"), [("cloudevents", ""), ("hmac", OWN)], ids=["cloudevents", "hmac"]
)
def test_attributes_of_cloudevents_stay_where_the_source_reads_them(
    inbox, tmp_path, endpoint, provider, options
):
    told = {"ce-id": "1", "ce-source": "/shop", "ce-type": "paid", "ce-specversion": "1.0"}
    source = f'[sources.shop]\nprovider = "{provider}"\nsecrets = ["env:STRIPE"]\n{options}'
    configured(inbox, tmp_path, source + forward(endpoint.url, **HOME, **{"from": "shop"}))
    inbox.deliver("/shop:1", source="shop", provider=provider, body=BODY, headers=json.dumps(told))

    work(inbox)

    sent = {name.lower(): value for name, value in endpoint.came[0][0].items()}
    assert told.items() <= sent.items()


def test_error_tells_nothing_of_the_url_but_its_place(inbox, tmp_path, endpoint):
    url = endpoint.url.replace("https://", "https://me:word@") + "/secret?token=secret"
    configured(inbox, tmp_path, forward("env:OUT", attempts=1, **HOME), OUT=url)
    endpoint.answers.append((400, {}))
    inbox.deliver("a", body=BODY)

    work(inbox)

    assert "word" not in errors(inbox)["a"]
    assert "secret" not in errors(inbox)["a"]
    assert endpoint.came[0][0]["authorization"] == "Basic bWU6d29yZA=="
    assert endpoint.came[0][2].endswith("?token=secret")
