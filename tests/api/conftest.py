import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import store
from hookonce.receiver.source import Source
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state


@dataclass
class Inbox:
    """The application on real servers, and tokens of every scope."""

    app: Any
    connection: Any
    settings: Any
    tokens: dict[str, str] = field(default_factory=dict)

    def ask(self, method, path, body=None, *, scope="admin", headers=(), **options):
        sent = {"Authorization": f"Bearer {self.tokens[scope]}"} if scope else {}
        if body is not None:
            options |= {"data": json.dumps(body), "content_type": "application/json"}
        client = self.app.test_client(use_cookies=False)
        return client.open(f"/api/v1{path}", method=method, headers=sent | dict(headers), **options)

    def deliver(self, *ids, status=None, **changes):
        events = [new_event(event_id, **changes) for event_id in ids]
        rows = store(self.connection, events)
        numbers = [rows[event.key].id for event in events]
        if status:
            for number in numbers:
                put_into_state(self.connection, number, status)
        return numbers

    def rows(self, query, *values):
        return self.connection.execute(query, values or None).fetchall()


@contextlib.contextmanager
def open_inbox(database_url, redis_url):
    sources = {"stripe": Source("stripe", load("stripe"), ("whsec_of_the_tests", "whsec_older"))}
    settings = Settings(database_url, redis_url, sources, desk="door")
    connection = connections.connect(database_url)
    app = create_app(settings)
    inbox = Inbox(app, connection, settings)
    for scope in api_tokens.Scope:
        inbox.tokens[scope] = api_tokens.create(connection, scope, [scope], None, "a test")
    seeing = [api_tokens.Scope.READ, api_tokens.Scope.BODIES]
    inbox.tokens["read+bodies"] = api_tokens.create(connection, "seeing", seeing, None, "a test")
    yield inbox
    connection.close()
    inbox.app.extensions["hookonce"].close()


@pytest.fixture
def inbox(database_url, redis_url):
    """The API over a ledger of the test's own."""
    with open_inbox(database_url, redis_url) as made:
        yield made


@pytest.fixture(scope="module")
def calm(fresh_database, fresh_redis):
    """The API over a ledger that the tests of a module share, and leave as it is."""
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        open_inbox(database_url, redis_url) as made,
    ):
        yield made
