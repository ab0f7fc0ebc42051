"""The dashboard in this process, on real servers, and a browser that only knows links, forms and cookies."""

import functools
import hashlib
import re
from dataclasses import dataclass, field, replace

import pytest
from flask import Flask
from jinja2 import BytecodeCache

from hookonce.receiver.app import create_app
from hookonce.receiver.config.admin import Admin
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import end_events, fail

TOKEN = "token-of-the-tests-only"
SECRET = "whsec_secret_of_the_tests"
KEY = bytes(range(32)).hex()


@dataclass
class Browser:
    """A client with cookies, and the form token of the page it saw last."""

    client: object
    page: object = None

    def get(self, path, **headers):
        self.page = self.client.get(path, headers=headers)
        self.page.get_data()
        self.page.close()  # a static file is open until then
        return self.page

    def post(self, path, **form):
        token = re.search('name="form_token" value="([^"]+)"', self.page.text) if self.page else None
        self.page = self.client.post(path, data=({"form_token": token[1]} if token else {}) | form)
        return self.page

    def sign_in(self, **form):
        secret = re.search('name="form" value="([^"]+)"', self.get("/admin/sign-in").text)[1]
        return self.client.post("/admin/sign-in", data={"form": secret, "token": TOKEN} | form)


@dataclass
class Inbox:
    """The application with a ledger that tests fill."""

    app: object
    connection: object
    settings: object
    browsers: list = field(default_factory=list)

    def browser(self):
        return Browser(self.app.test_client())

    def store(self, *ids, **changes):
        return [
            store(self.connection, [new_event(each, **changes)])[changes.get("source", "stripe"), each].id
            for each in ids
        ]

    def die(self, event, handler="shop.credit", error="ValueError: no such customer", attempts=3):
        """Have a handler of an event end dead, each attempt with this error."""
        end_events(self.connection, "dead", [event], handler=handler, attempts=attempts)
        self.connection.execute(
            "UPDATE hookonce.runs SET started_at = finished_at - interval '2 s' WHERE event = %s", [event]
        )
        for attempt in range(1, attempts + 1):
            fail(self.connection, event, error, handler=handler, attempt=attempt)

    def end(self, events, status):
        """Have events end done or ignored, as if a worker had been there."""
        end_events(self.connection, status, events)

    def rows(self, query, *values):
        return self.connection.execute(query, values or None).fetchall()

    def audit(self):
        return self.rows("SELECT who, action, subject FROM hookonce.audit WHERE action <> 'look' ORDER BY id")


@pytest.fixture(scope="session", autouse=True)
def stretched_once():
    """The key that is made of the token takes as long as it should, but only once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "scrypt", functools.cache(hashlib.scrypt))
        yield


class CompiledOnce(BytecodeCache):
    """Templates as bytecode, for all applications of this process: compiling them took half of each test's time."""

    def __init__(self):
        self._code = {}

    def load_bytecode(self, bucket):
        if bucket.key in self._code:
            bucket.bytecode_from_string(self._code[bucket.key])

    def dump_bytecode(self, bucket):
        self._code[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "jinja_options", {"bytecode_cache": CompiledOnce()})
        yield


@pytest.fixture
def settings(database_url, redis_url, tmp_path):
    (tmp_path / "hookonce.toml").write_text(
        '[receiver]\npublic_url = "https://hooks.example.com"\nencryption_keys = ["env:KEY"]\n'
        '[admin]\ntoken = "env:TOKEN"\n'
        '[sources.stripe]\nsecrets = ["env:SECRET", "env:OLD?"]\n[sources.github]\nsecrets = ["env:SECRET"]\n'
    )
    return load_settings(
        {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"),
            "TOKEN": TOKEN,
            "SECRET": SECRET,
            "KEY": KEY,
        }
    )


@pytest.fixture
def inbox(settings):
    app = create_app(settings)
    with connections.connect(settings.database_url) as connection:
        yield Inbox(app, connection, settings)
    app.extensions["hookonce"].close()


@pytest.fixture
def browser(inbox):
    """A browser that is signed in."""
    browser = inbox.browser()
    assert browser.sign_in().status_code == 303
    return browser


@pytest.fixture
def closed(settings):
    """A client of an application without a token."""
    app = create_app(replace(settings, admin=Admin()))
    yield app.test_client()
    app.extensions["hookonce"].close()
