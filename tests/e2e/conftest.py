"""A real receiver, a real worker and a real browser; whatever a page does wrong fails its test."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.dashboard.sessions import Session, Sessions
from hookonce.receiver.dev.stack import session as http
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
TOKEN = "token-of-the-browser-tests"
SECONDS = 60  # on a machine that does other things too, until a worker has started and the browser has drawn
PATIENCE = 1000 * SECONDS  # milliseconds
PICTURES_ARE_WANTED = os.environ.get("HOOKONCE_SCREENSHOTS") == "1"
SECRETS = {name: f"secret-of-{name}-in-the-browser-tests" for name in ("stripe", "github", "shopify")}
CONFIGURATION = """
[receiver]
handlers = ["shop"]
[sources.stripe]
secrets = ["env:SECRET_STRIPE"]
[sources.github]
secrets = ["env:SECRET_GITHUB"]
[sources.shopify]
secrets = ["env:SECRET_SHOPIFY"]
"""
HANDLERS = """
import logging
from pathlib import Path
from hookonce import GiveUp, on

log = logging.getLogger("shop")
BROKEN = Path(__file__).with_name("broken")

@on("stripe", "invoice.*", name="shop.credit", attempts=1)
def credit(event, tx):
    log.info("looking for the order of %s", event.data["id"])
    if BROKEN.exists():
        log.warning("no answer from shop-db:5432, asking once more")
        raise ConnectionError(f"the shop's database refuses connections (order {event.id})")
    return {"credited": event.data["id"]}

@on("stripe", "evil*", name="shop.evil", attempts=1)
def evil(event, tx):
    raise GiveUp(event.data["text"])

@on("stripe", "odd*", name="shop.odd")
def odd(event, tx):
    return event.data["text"]

@on("stripe", "wide*", name="shop.wide", attempts=1)
def wide(event, tx):
    raise ValueError("columns in this line: a hundred, which have room on a screen of 1280 pixels.")

@on("github", "push", name="deploy.start")
def deploy(event, tx):
    return {"deployed": event.data["after"]}
"""
DAY = """
WITH counted AS (
    SELECT date_trunc('minute', now()) - n * interval '1 minute' AS at, source, what,
           round(share * (3 + 2 * sin(n / 229.0) + sin(n / 7.0) * 0.4 + sin(n / 3.0) * 0.3)) AS count
    FROM generate_series(1, 1439) AS n,
         (VALUES ('stripe', 'accepted', 6.0), ('stripe', 'done', 5.9), ('stripe', 'dead', 0.12),
                 ('github', 'accepted', 2.4), ('github', 'done', 2.4), ('github', 'rejected.bad_signature', 0.11),
                 ('shopify', 'accepted', 1.1), ('shopify', 'done', 1.0), ('stripe', 'rejected.stale', 0.12)
         ) AS kinds (source, what, share)
)
INSERT INTO hookonce.activity (minutes, at, source, what, count)
SELECT 1, at, source, what, count FROM counted WHERE count > 0
UNION ALL SELECT 1, at, '', 'filled', 0 FROM counted WHERE at > now() - interval '10 minutes' GROUP BY at
"""
"""A day that was counted, so that the charts have something to show."""


def chromium():
    """The browser of this machine, or a skip; in CI there must be one."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("HOOKONCE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if not found and os.environ.get("CI"):
        pytest.fail(
            "no Chromium on the PATH; install one (apt-get install chromium) or name it in HOOKONCE_CHROMIUM"
        )
    return found or pytest.skip("no Chromium on the PATH")


@dataclass
class Inbox:
    """The running inbox: what a sender and the author of its handlers can do to it."""

    url: str
    directory: Path
    connection: object

    def deliver(self, body, source="stripe", headers=(), **said):
        """Send a body as its sender would; give the answer."""
        raw = json.dumps(body).encode()
        signed = load(source).sign(raw, SECRETS[source], datetime.now(UTC), **said)
        with http() as client:
            return client.post(
                f"{self.url}/hooks/{source}", data=raw, headers=dict(signed) | dict(headers), timeout=10
            )

    def invoice(self, event_id, **more):
        body = {
            "id": event_id,
            "type": "invoice.paid",
            "data": {"amount_paid": 4200, "currency": "eur"},
        } | more
        assert self.deliver(body).status_code == 200

    def fill(self, count, prefix):
        """Put invoices into the ledger, as so many deliveries would."""
        for start in range(0, count, 100):
            ids = [f"{prefix}{n:04}" for n in range(start, min(count, start + 100))]
            bodies = [json.dumps({"id": each, "type": "invoice.paid"}).encode() for each in ids]
            store(
                self.connection, [new_event(each, body=body) for each, body in zip(ids, bodies, strict=True)]
            )

    def breaks(self):
        (self.directory / "broken").touch()

    def mends(self):
        (self.directory / "broken").unlink(missing_ok=True)

    def buries(self, prefix):
        """Have the dead events whose ids begin so count as done, so that no other test finds them dead."""
        self.connection.execute(
            "UPDATE hookonce.runs SET status = 'done', issue = NULL WHERE status = 'dead' "
            "AND event IN (SELECT id FROM hookonce.events WHERE starts_with(event_id, %s))",
            [prefix],
        )

    def until(self, query, expected, seconds=SECONDS):
        """Wait until a query gives what is expected."""
        until(lambda: self.connection.execute(query).fetchone()[0], expected, seconds=seconds, what=query)


@pytest.fixture(scope="session")
def inbox(fresh_database, fresh_redis, tmp_path_factory):
    directory = tmp_path_factory.mktemp("inbox")
    (directory / "hookonce.toml").write_text(CONFIGURATION)
    (directory / "shop.py").write_text(HANDLERS)
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        connections.connect(database_url) as connection,
    ):
        connection.execute(DAY)
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        environment = _environment(database_url, redis_url)
        with (
            _run(directory, environment, "serve", "--bind", f"fd://{listener.fileno()}", listener=listener),
            _run(directory, environment, "worker"),
        ):
            listener.close()
            _await(url)
            yield Inbox(url, directory, connection)


@contextlib.contextmanager
def _run(directory, environment, *command, listener=None):
    with (directory / f"{command[0]}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hookonce.receiver.cli", *command],
            cwd=directory,
            env=environment,
            stdout=log,
            stderr=log,
            pass_fds=[listener.fileno()] if listener else [],
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(database_url, redis_url):
    foreign = ("HOOKONCE_", "GUNICORN_", "PG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    secrets = {f"SECRET_{name.upper()}": secret for name, secret in SECRETS.items()}
    ours = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_ADMIN_TOKEN": TOKEN}
    return kept | secrets | ours | {"HOOKONCE_DESK": "door", "WEB_CONCURRENCY": "1", "PYTHONPATH": str(ROOT)}


def _await(url):
    with http() as client:
        until(lambda: client.get(f"{url}/livez", timeout=5).ok, seconds=SECONDS, away=OSError)


@pytest.fixture(scope="module")
def browser():
    # Playwright's loop goes on in this thread until it is stopped, and an async handler runs a loop of its own.
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as driver:
        options = {"executable_path": chromium(), "args": ["--no-sandbox", "--disable-dev-shm-usage"]}
        browser = driver.chromium.launch(**options)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A browser's window, and what went wrong in it: dialogs, errors, violations of the content security policy."""

    page: object
    troubles: list = field(default_factory=list)

    def watch(self):
        self.page.on(
            "dialog", lambda dialog: (self.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("console", self._heard)
        return self.page

    def _heard(self, message):
        if message.type == "error" or "Content Security Policy" in message.text:
            self.troubles.append(f"{message.type}: {message.text}")


@pytest.fixture
def window(browser, inbox):
    """Make a window that is signed in; at the end none of the test's windows may have met any trouble."""
    contexts, watched = [], []

    def make(*, signed_in=True, width=1280, height=800, **options):
        context = browser.new_context(
            base_url=inbox.url, viewport={"width": width, "height": height}, **options
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        if signed_in:
            cookie = Sessions(TOKEN).cookie(Session("e2e", "Ada (dashboard)"))
            context.add_cookies([{"name": "hookonce_admin", "value": cookie, "url": f"{inbox.url}/admin"}])
        watched.append(Watched(context.new_page()))
        return watched[-1].watch()

    yield make
    for context in contexts:
        context.close()
    inbox.mends()
    assert [trouble for each in watched for trouble in each.troubles] == []


@pytest.fixture
def page(window):
    return window()


@pytest.fixture
def picture():
    """Take a screenshot into docs/screenshots if HOOKONCE_SCREENSHOTS=1 asks for it, small enough to be kept there."""

    def take(page, name):
        if not PICTURES_ARE_WANTED:
            return
        path = ROOT / "docs" / "screenshots" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=path)
        assert path.stat().st_size < 150_000

    return take


@pytest.fixture
def ledger(inbox):
    assert isinstance(inbox.connection, psycopg.Connection)
    return inbox.connection
