"""A worker, the sweep and `db upgrade` do all of their work without a secret of a source, a client or the dashboard."""

import base64
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import psycopg
import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.app import create_app
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.monitoring import alert_events
from tests.support.page_commands import clean_environ
from tests.support.waiting import until

CONFIGURATION = """
[receiver]
handlers = ["shop"]
encryption_keys = ["env:HOOKONCE_KEY"]

[sources.stripe]
provider = "stripe"
secrets = ["env:STRIPE_WEBHOOK_SECRET"]

[sources.shop]
provider = "hmac"
secrets = ["file:{place}/receiver-secret"]
[sources.shop.hmac]
header = "x-signature"
id = "$.id"
type = "fixed:order"

[sources.statuspage]
provider = "statuspage"

[commands.pay]
handler = "shop:pay"
auth = {{ till = ["env:TILL_TOKEN"] }}

[admin]
token = "env:ADMIN_TOKEN"

[alerts]
urls = ["env:ALERTS_URL"]
secret = "env:ALERTS_SECRET"
"""
HANDLERS = """
from hookonce import on, on_batch
from sqlalchemy import text

DONE = text("INSERT INTO done (handler, event) VALUES (:handler, :event)")


def note(tx, handler, event):
    tx.execute(DONE, {"handler": handler, "event": event.data["id"]})


@on("stripe", "invoice.paid", name="plain")
def plain(event, tx):
    note(tx, "plain", event)


@on("stripe", "invoice.paid", name="no transaction", tx="none")
def alone(event):
    with event.tx() as tx:
        note(tx, "no transaction", event)


@on("stripe", "invoice.paid", name="async")
async def asynchronous(event, tx):
    await tx.execute(DONE, {"handler": "async", "event": event.data["id"]})


@on("stripe", "invoice.paid", name="steps")
def in_steps(event, tx):
    if event.step("charge", lambda key: {"charged": 5}) == {"charged": 5}:
        note(tx, "steps", event)


@on_batch("stripe", "invoice.paid", most=10, name="batch")
def many(events, tx):
    for event in events:
        note(tx, "batch", event)


@on("twilio", "*", name="form")
def form(event, tx):
    tx.execute(DONE, {"handler": "form", "event": event.data["MessageSid"]})


def pay(event, tx):
    note(tx, "command", event)
    return {"paid": True}
"""
KEY = base64.b64encode(os.urandom(32)).decode()
ALERTS_SECRET = "whsec_" + base64.b64encode(os.urandom(24)).decode()
STRIPE_SECRET, TWILIO_SECRET = "whsec_of_the_receiver", "token-of-the-receiver-0123456789"
OF_THE_RECEIVER = {
    "STRIPE_WEBHOOK_SECRET": STRIPE_SECRET,
    "HOOKONCE_SECRET__TWILIO": TWILIO_SECRET,
    "HOOKONCE_SECRET__STATUSPAGE": "statuspage-of-the-receiver-0123456789",
    "TILL_TOKEN": "token-of-the-till-0123456789",
    "ADMIN_TOKEN": "token-of-the-operator-0123456789",
}
URL = "https://hooks.example.com"
DONE = {(handler, "evt_1") for handler in ("plain", "no transaction", "async", "steps", "batch")}
DONE |= {("form", "SM1"), ("command", "pay_1")}


class Desk:
    """A database, a configuration, and an environment for each kind of process."""

    def __init__(self, place, database_url, redis_url, alerts_url):
        self.place, self.database_url = place, database_url
        (place / "hookonce.toml").write_text(CONFIGURATION.format(place=place))
        (place / "shop.py").write_text(HANDLERS)
        shared = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_KEY": KEY}
        self.receiver = shared | OF_THE_RECEIVER | {"HOOKONCE_PUBLIC_URL": URL}
        self.worker = clean_environ() | shared | {"HOOKONCE_PUBLIC_URL": URL, "PYTHONPATH": str(place)}
        self.worker |= {"ALERTS_URL": alerts_url, "ALERTS_SECRET": ALERTS_SECRET}

    def command(self, *words, **environ):
        return subprocess.run(
            [sys.executable, "-m", "hookonce.receiver.cli", *words],
            env=self.worker | environ,
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    @contextmanager
    def worker_running(self):
        log = self.place / "worker.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "hookonce.receiver.cli", "worker"],
                env=self.worker,
                cwd=self.place,
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(20) == 0, log.read_text()

    def rows(self, statement):
        with psycopg.connect(libpq_url(self.database_url), autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []


@contextmanager
def listening():
    """Take what is posted; gives the address and what came."""
    came = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self):
            came.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Taking)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def posted():
    with listening() as found:
        yield found


@pytest.fixture
def desk(tmp_path, database_url, redis_url, posted):
    return Desk(tmp_path, database_url, redis_url, posted[0])


def test_worker_runs_every_kind_of_handler_in_its_own_environment(desk, posted):
    (desk.place / "receiver-secret").write_text("secret-of-a-file-0123456789")
    settings = load_settings(desk.receiver | {"HOOKONCE_CONFIG": str(desk.place / "hookonce.toml")})
    (desk.place / "receiver-secret").unlink()  # the worker is on another machine
    desk.rows("CREATE TABLE done (handler text, event text)")

    with desk.worker_running() as worker:
        app = create_app(settings)
        answers = [*sent(app.test_client(use_cookies=False))]
        app.extensions["hookonce"].close()
        with connections.connect(desk.database_url) as connection:
            alert_events.send_test(connection, settings.keyring)
        until(lambda: set(desk.rows("SELECT * FROM done")), DONE, process=worker)
        until(lambda: len(posted[1]), 1, process=worker)
        until(
            lambda: desk.rows("SELECT count(*) FROM hookonce.run_states WHERE status <> 'done'"),
            [(0,)],
            process=worker,
        )

    assert answers[:2] == [200, 200]
    assert answers[2] in {200, 202}  # whether its worker was done by then
    assert desk.rows("SELECT count(*) FROM hookonce.bodies WHERE key_id IS NULL") == [(0,)]
    assert [*OF_THE_RECEIVER.keys() & desk.worker.keys()] == []


def sent(client):
    stripe, twilio = load("stripe"), load("twilio")
    now = datetime.now(UTC)
    for delivery in (
        stripe.delivery(b'{"id": "evt_1", "type": "invoice.paid"}', STRIPE_SECRET, now),
        twilio.delivery(b"MessageSid=SM1&SmsStatus=sent", TWILIO_SECRET, now, url=f"{URL}/hooks/twilio"),
    ):
        path = "/hooks/twilio" if b"Sid" in delivery.body else "/hooks/stripe"
        yield client.post(path, headers=dict(delivery.headers), data=delivery.body).status_code
    headers = {"Authorization": f"Bearer {OF_THE_RECEIVER['TILL_TOKEN']}", "Idempotency-Key": "one"}
    yield client.post("/commands/pay", headers=headers, json={"id": "pay_1"}).status_code


def test_commands_of_a_worker_host_need_no_secret_of_the_receiver(desk):
    (desk.place / "receiver-secret").write_text("")  # mounted, and kept from this user: as empty as none
    ended = {words: desk.command(*words.split()).returncode for words in ("sweep --once", "stats")}

    assert ended == dict.fromkeys(ended, 0)


def test_schema_is_upgraded_with_the_address_of_the_database_alone(desk):
    words = [sys.executable, "-m", "hookonce.receiver.cli", "db", "upgrade"]
    environ = clean_environ() | {"DATABASE_URL": desk.database_url}

    done = subprocess.run(
        words, env=environ, cwd=desk.place, capture_output=True, text=True, check=False, timeout=30
    )

    assert (done.returncode, "the schema is at" in done.stderr) == (0, True), done.stderr


def test_doctor_of_a_worker_says_who_needs_the_secrets_that_are_not_here(desk):
    examined = desk.command("doctor")

    lines = [line for line in examined.stdout.splitlines() if "source stripe" in line]
    assert lines[0].split()[0] == "warn"
    assert "a receiver needs STRIPE_WEBHOOK_SECRET" in lines[0]
    assert "workers, the sweep and `db upgrade` need none" in lines[0]
    assert "7 import" in examined.stdout
    assert "fail" not in {line.split()[0] for line in examined.stdout.splitlines() if "redis" not in line}
