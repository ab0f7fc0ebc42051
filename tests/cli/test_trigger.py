import io
import json
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def receiver(inbox, monkeypatch, redis_url):
    """The receiver itself on a port of its own, which PORT names."""
    monkeypatch.setenv("REDIS_URL", redis_url)
    with serving(create_app(load_settings())) as port:
        monkeypatch.setenv("PORT", str(port))
        yield inbox


@contextmanager
def serving(app):
    def ended(environ, start_response):
        """The body with an end to it, which wsgiref leaves out and gunicorn has."""
        length = int(environ.get("CONTENT_LENGTH") or 0)
        return app(environ | {"wsgi.input": io.BytesIO(environ["wsgi.input"].read(length))}, start_response)

    with make_server("127.0.0.1", 0, ended, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("receiver")
def test_trigger_sends_one_event_as_often_as_it_is_told(hookonce):
    sent = hookonce("trigger", "stripe", "invoice.paid", "--times", "3", "--event-id", "evt_1")

    assert sent.code == 0
    assert sent.lines == ["200 accepted evt_1 invoice.paid", *["200 duplicate evt_1 invoice.paid"] * 2]


@pytest.mark.usefixtures("receiver")
@pytest.mark.parametrize(("source", "kind"), [("stripe", "invoice.paid"), ("github", "push")])
def test_trigger_sends_as_many_events_as_it_is_told(hookonce, ledger, source, kind):
    sent = hookonce("trigger", source, kind, "--count", "5", "--times", "2", "--json").documents

    assert [answer["status"] for answer in sent] == ["accepted", "duplicate"] * 5
    assert len({answer["event_id"] for answer in sent}) == 5
    assert ledger.execute(
        "SELECT count(DISTINCT event_id), max(repeat_of) FROM hookonce.event_states"
    ).fetchall() == [(5, None)]


@pytest.mark.usefixtures("receiver")
@pytest.mark.parametrize(("option", "answer"), [("--forge", "401 bad_signature"), ("--stale", "401 stale")])
def test_trigger_succeeds_when_what_is_not_genuine_is_refused(hookonce, option, answer):
    sent = hookonce("trigger", "stripe", option)

    assert sent.code == 0
    assert sent.lines[0].startswith(answer)


@pytest.mark.usefixtures("receiver")
def test_trigger_names_the_secret_and_the_process_that_rejected_it(hookonce, monkeypatch):
    monkeypatch.setenv("STRIPE_SECRET", "whsec_of_another_terminal")

    sent = hookonce("trigger", "stripe")

    assert sent.code == 1
    assert f"the process {os.getpid()} in {Path.cwd()}" in sent.err
    assert "its secret of source 'stripe' is not the one that signed here (env:STRIPE_SECRET)" in sent.err


ANSWERS = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(401); self.end_headers(); self.wfile.write(sys.argv[1].encode())
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def elsewhere(tmp_path_factory):
    """A function: a server of another project's directory that answers 401 with a text, and its port."""
    started = []

    def start(text):
        there = tmp_path_factory.mktemp("another")
        command = [sys.executable, "-c", ANSWERS, text]
        started.append(subprocess.Popen(command, cwd=there, stdout=subprocess.PIPE, text=True))
        return there, started[-1].stdout.readline().strip()

    yield start
    for process in started:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"code": "bad_signature"}',
            "bad_signature: {who} answered at 127.0.0.1:{port}, which is another project's",
        ),
        ("who are you?", "{who} answered 401, which is no answer of hookonce's"),
    ],
)
def test_trigger_names_another_project_that_answers(hookonce, elsewhere, text, said):
    directory, port = elsewhere(text)

    sent = hookonce("trigger", "stripe", "--url", f"http://127.0.0.1:{port}")

    assert sent.code == 1
    found = re.search(r"the process \d+ in \S+", sent.err)
    assert str(directory) in found[0]
    assert said.format(who=found[0], port=port) in sent.err


@pytest.mark.usefixtures("receiver")
def test_trigger_tells_the_answer_when_the_provider_has_a_bug(hookonce, monkeypatch):
    monkeypatch.setattr("hookonce.providers.stripe.events", lambda delivery: [delivery.nothing])

    sent = hookonce("trigger", "stripe", "invoice.paid", "--event-id", "evt_1")

    assert (sent.code, sent.lines) == (0, ["200 accepted evt_1 invoice.paid"])


@pytest.mark.usefixtures("receiver")
@pytest.mark.parametrize("header", ["no-value", "a b=c", "x=\r\nY: z", "=v"])
def test_trigger_refuses_what_can_not_be_a_header(hookonce, header):
    sent = hookonce("trigger", "github", "push", "--header", header)

    assert (sent.code, "is not a header" in sent.err) == (2, True)


def test_trigger_finds_port_and_secret_of_a_running_dev(receiver, hookonce, monkeypatch):
    secrets = {"stripe": os.environ["STRIPE_SECRET"]}
    (receiver / ".hookonce").mkdir()
    (receiver / ".hookonce/dev.json").write_text(json.dumps({"port": os.environ["PORT"], "secrets": secrets}))
    (receiver / "hookonce.toml").unlink()
    monkeypatch.delenv("PORT")

    sent = hookonce("trigger", "stripe", "--event-id", "evt_1")

    assert sent.lines == ["200 accepted evt_1 invoice.paid"]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["strip"], 4, "no source is called 'strip'; did you mean 'stripe'?"),
        (["clerk"], 4, 'add [sources.clerk] with provider = "clerk" to hookonce.toml'),
        (["stripe", "invoice.payd"], 4, "did you mean 'invoice.paid'?"),
        (["github", "--stale"], 1, "github signs no time"),
        (["stripe", "--set", "nonsense"], 2, "write path=value"),
        (["stripe", "--count", "2", "--event-id", "evt_1"], 2, "leave out --edit and --event-id"),
        (["stripe", "--count", "2", "--edit"], 2, "leave out --edit and --event-id"),
        (["stripe", "--url", "http://127.0.0.1:1"], 1, "http://127.0.0.1:1/hooks/stripe does not answer"),
        (["stripe", "--url", "127.0.0.1:8000/hooks/stripe"], 2, "expected one like http://127.0.0.1:8000"),
        ([], 2, "name a source"),
    ],
)
def test_trigger_says_what_is_wrong(hookonce, arguments, code, said):
    sent = hookonce("trigger", *arguments)

    assert sent.code == code
    assert said in sent.err


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("source", "provider"), [("stripe", "stripe"), ("github", "github")])
def test_trigger_lists_at_least_ten_types(hookonce, source, provider):
    listed = hookonce("trigger", source, "--list", "--json").documents

    assert len({document["type"] for document in listed}) >= 10
    assert {document["provider"] for document in listed} == {provider}


@pytest.mark.usefixtures("receiver")
def test_trigger_changes_body_and_headers_as_it_is_told_and_says_where_it_sent(hookonce, ledger):
    change = ("--remove", "data.object.customer", "--set", "data.object.amount_paid=7", "--set", "note=a b")
    sent = hookonce("trigger", "stripe", "invoice.paid", *change, "--header", "X-More=a b")

    body, headers = ledger.execute("SELECT body, headers FROM hookonce.bodies").fetchone()
    event = json.loads(body)
    assert "customer" not in event["data"]["object"]
    assert (event["data"]["object"]["amount_paid"], event["note"], headers["x-more"]) == (7, "a b", "a b")
    assert f"to http://127.0.0.1:{os.environ['PORT']}/hooks/stripe" in sent.err


@pytest.mark.usefixtures("receiver")
def test_trigger_sends_what_was_saved_in_the_editor(hookonce, ledger, monkeypatch, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/"amount_paid": [0-9]*/"amount_paid": 7/\' "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))

    sent = hookonce("trigger", "stripe", "invoice.paid", "--edit", "--event-id", "evt_1")

    body = json.loads(ledger.execute("SELECT body FROM hookonce.bodies").fetchone()[0])
    assert (sent.lines, body["data"]["object"]["amount_paid"]) == (["200 accepted evt_1 invoice.paid"], 7)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("true", "the body was not saved, so nothing was sent"),
        ("echo { > $1", "the saved body can't be sent: "),
    ],
)
def test_trigger_sends_nothing_that_was_not_saved_or_is_no_json(
    hookonce, monkeypatch, tmp_path, script, said
):
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))

    sent = hookonce("trigger", "stripe", "--edit")

    assert (sent.code, sent.lines) == (1, [])
    assert said in sent.err


@pytest.mark.usefixtures("place")
def test_trigger_names_the_variable_of_a_missing_secret(hookonce, monkeypatch):
    monkeypatch.delenv("STRIPE_SECRET")

    sent = hookonce("trigger", "stripe")

    assert sent.code == 1
    assert "source 'stripe' has no signing secret; set STRIPE_SECRET" in sent.err


@pytest.mark.usefixtures("inbox")
def test_trigger_does_not_call_what_can_not_be_taken_now_rejected(hookonce):
    def away(_environ, start_response):
        start_response("503 Service Unavailable", [])
        return [b'{"code": "ledger_unavailable"}']

    with serving(away) as port:
        sent = hookonce("trigger", "stripe", "--url", f"http://127.0.0.1:{port}")

    assert sent.code == 1
    assert "can't take it now (HTTP 503): PostgreSQL is away" in sent.err
    assert "rejected" not in sent.err


def test_trigger_of_a_sender_without_a_sample_says_how_to_give_its_fields(receiver, hookonce, monkeypatch):
    table = '[sources.shop]\nprovider = "hmac"\nsecrets = ["env:SHOP"]\n'
    table += 'hmac = { header = "x-sig", id = "$.id", type = "$.kind" }\n'
    monkeypatch.setenv("SHOP", "a secret of the tests")
    (receiver / "hookonce.toml").write_text(table)
    with serving(create_app(load_settings())) as port:
        monkeypatch.setenv("PORT", str(port))
        lacking = hookonce("trigger", "shop", "--remove", "kind")
        given = hookonce("trigger", "shop", "--set", "kind=order.paid")

    assert (lacking.code, given.code) == (0, 0)
    assert "no sample of hmac, so its body was made up" in lacking.err
    assert "--set type=" in lacking.err
    assert "--set" not in given.err
    assert given.lines[0].endswith("order.paid")


def test_trigger_in_a_directory_without_a_project_says_where_to_go(hookonce, place):
    (place / "hookonce.toml").unlink()

    sent = hookonce("trigger", "stripe")

    assert sent.code == 4
    assert f"there is no hookonce.toml in {place}; go to the directory where `hookonce dev` runs" in sent.err
