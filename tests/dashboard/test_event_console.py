"""An event's page beside its runs: the timeline, the proof, the test, and where it is sent again."""

import ast
import json
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.dashboard.event_page.as_test import as_test
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.samples import files
from tests.dashboard.conftest import SECRET


def deliver(inbox, body, secret=SECRET):
    raw = json.dumps(body).encode()
    signed = dict(load("stripe").sign(raw, secret, datetime.now(UTC)))
    answer = inbox.app.test_client().post("/hooks/stripe", data=raw, headers=signed)
    assert answer.status_code == 200
    return inbox.rows("SELECT max(id) FROM hookonce.event_states")[0][0]


def text(page):
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page))


def test_timeline_tells_what_happened_in_order(inbox, browser):
    (number,) = inbox.store("evt_1")
    inbox.die(number, attempts=2)

    page = text(browser.get(f"/admin/events/{number}").text.split('aria-labelledby="timeline"')[1])

    told = [page.index(each) for each in ("Received", "shop.credit", "Attempt 1", "Attempt 2", "2.0 s")]
    assert told == sorted(told)


def test_headers_tell_what_was_verified_and_by_which_secret(inbox, browser):
    number = deliver(inbox, {"id": "evt_9", "type": "invoice.paid"})

    page = browser.get(f"/admin/events/{number}").text

    assert '<dt>stripe-signature <span class="proof">verified</span></dt>' in page
    assert "matches the secret <code>env:SECRET</code>" in page
    assert SECRET not in page


def test_proof_does_not_hold_for_a_body_that_was_changed(inbox, browser):
    number = deliver(inbox, {"id": "evt_9", "type": "invoice.paid"})
    changed = replace(
        inbox.settings.sources["stripe"], secrets=("whsec_another",), secret_names=("env:OTHER",)
    )
    inbox.settings.sources["stripe"] = changed

    assert "matches the secret" not in browser.get(f"/admin/events/{number}").text


def test_neighbours_of_an_event_are_those_of_its_view(inbox, browser):
    first, other, third = inbox.store("evt_1", "evt_2", "evt_3")
    inbox.connection.execute("UPDATE hookonce.events SET type = 'other' WHERE id = %s", [other])

    page = browser.get(f"/admin/events/{third}?type=invoice.paid").text

    assert re.search(f'data-key="j" rel="next" href="/admin/events/{first}[?]type=invoice.paid"', page)
    assert 'data-key="k"' not in page


def event_row(kind="invoice.paid"):
    return Event.model_construct(source="billing", provider="stripe", event_id="evt_theirs", type=kind)


def settings_of(test):
    """Give what the test sets in its event."""
    (call,) = [
        node
        for node in ast.walk(ast.parse(test))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "deliver"
    ]
    assert [each.value for each in call.args] == ["billing", "invoice.paid"]
    said = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    assert said.pop("provider") == "stripe"
    return said.get("set", {})


def test_event_as_a_test_sets_what_differs_from_the_sample():
    body = json.loads(json.dumps(files.sample("stripe", "invoice.paid").body))
    body["id"] = "evt_theirs"
    body["created"] += 1000
    body["data"]["object"]["customer"] = 'cus_"7'
    body["data"]["object"]["added"] = {"deep": [1]}
    body["data"]["object"]["number"] = "two\nlines \N{GRINNING FACE}\N{RIGHT-TO-LEFT OVERRIDE}"

    test = as_test(event_row(), json.dumps(body).encode())

    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in test
    assert settings_of(test) == {
        "data.object.customer": 'cus_"7',
        "data.object.number": "two\nlines \N{GRINNING FACE}\N{RIGHT-TO-LEFT OVERRIDE}",
        "data.object.added.deep": [1],
    }


def test_event_as_a_test_of_the_sample_itself_sets_nothing():
    assert (
        settings_of(as_test(event_row(), json.dumps(files.sample("stripe", "invoice.paid").body).encode()))
        == {}
    )


@pytest.mark.parametrize(
    ("kind", "body"), [("no.such.type", b"{}"), ("invoice.paid", b"\xff"), ("invoice.paid", b"[" * 99_999)]
)
def test_event_without_a_sample_or_json_is_no_test(kind, body):
    assert as_test(event_row(kind), body) is None


@pytest.fixture
def listener():
    """A server of the operator's; gives its URL and what it got."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hooks/", got
    server.shutdown()
    thread.join()
    server.server_close()


def allow(inbox, *addresses):
    object.__setattr__(inbox.settings.admin, "send_to", addresses)


def test_event_is_sent_again_signed_anew(inbox, browser, listener):
    url, got = listener
    allow(inbox, url)
    number = deliver(inbox, {"id": "evt_9", "type": "invoice.paid"})
    browser.get(f"/admin/events/{number}")

    answer = browser.post(f"/admin/events/{number}/send-again", url=url + "stripe")
    page = browser.get(answer.location.partition("#")[0]).text

    ((path, headers, body),) = got
    assert path == "/hooks/stripe"
    assert json.loads(body)["id"] == "evt_9"
    stripe = inbox.settings.sources["stripe"].provider
    lowered = {name.lower(): value for name, value in headers.items()}
    stripe.verify(Delivery("POST", url, lowered, body), (SECRET,), datetime.now(UTC))
    assert "Answered 202 after" in page
    assert inbox.audit()[-1] == ("admin (dashboard)", "send again", f"event {number}")


@pytest.mark.parametrize("path", ["", "../admin", "http://127.0.0.1:1/other"])
def test_event_is_sent_nowhere_that_is_not_allowed(inbox, browser, listener, path):
    url, got = listener
    allow(inbox, url)
    number = deliver(inbox, {"id": "evt_9", "type": "invoice.paid"})
    browser.get(f"/admin/events/{number}")
    where = path if "://" in path or not path else url + path

    assert browser.post(f"/admin/events/{number}/send-again", url=where).status_code == 400
    assert got == []


def test_event_that_does_not_arrive_says_so(inbox, browser):
    allow(inbox, "http://127.0.0.1:9/")
    number = deliver(inbox, {"id": "evt_9", "type": "invoice.paid"})
    browser.get(f"/admin/events/{number}")

    page = browser.post(f"/admin/events/{number}/send-again", url="http://127.0.0.1:9/x")

    assert page.status_code == 502
    assert "did not answer: ConnectionError" in page.text
