"""Runs the handlers of docs/how-to/handlers.md and concurrency.md in a worker; test_page_commands.py runs commands."""

import json
import re
import sys
import types
from contextlib import contextmanager
from pathlib import Path

import pytest
import responses

from hookonce.jobs import handlers
from hookonce.jobs.attempts import failure_callbacks
from hookonce.jobs.handlers import Registry
from tests.support.inbox import inbox

__all__ = ["inbox"]

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
CODE = "\n".join(
    block
    for page in ("handlers.md", "concurrency.md")
    for block in re.findall(r"^```python\n(.*?)^```", (HOW_TO / page).read_text(), re.DOTALL | re.MULTILINE)
)
INVOICE = {"data": {"object": {"id": "in_1", "amount_paid": 4900, "receipt_email": "ann@example.com"}}}


class Tracker(types.ModuleType):
    """Stands for `sentry_sdk`, as far as the page uses it."""

    def __init__(self):
        super().__init__("sentry_sdk")
        self.captured, self._tags = [], {}

    @contextmanager
    def new_scope(self):
        self._tags = {}
        yield self

    def set_tag(self, name, value):
        self._tags[name] = value

    def set_level(self, level):
        self._tags["level"] = level

    def capture_exception(self, error):
        self.captured.append((type(error).__name__, self._tags))


@pytest.fixture
def page(inbox, monkeypatch):
    """The page's code as a module, its handlers in the inbox's registry."""
    registry = Registry()
    monkeypatch.setattr(handlers, "registry", registry)
    monkeypatch.setattr(failure_callbacks, "callbacks", [])
    monkeypatch.setitem(sys.modules, "sentry_sdk", Tracker())
    module = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", module)
    exec(compile(CODE, "handlers.md", "exec"), vars(module))  # noqa: S102  our own page
    inbox.registry = registry
    engine = module.create_engine(
        inbox.settings.database_url.replace("postgresql:", "postgresql+psycopg:", 1)
    )
    module.Base.metadata.create_all(engine)
    engine.dispose()
    return module


def results(inbox):
    return inbox.rows(
        "SELECT e.event_id, r.status, r.attempts, r.result FROM hookonce.run_states r "
        "JOIN hookonce.event_states e ON e.id = r.event ORDER BY e.event_id"
    )


def deliver(inbox, event_id, type_):
    body = json.dumps(INVOICE | {"id": event_id, "type": type_}).encode()
    return inbox.deliver(event_id, type=type_, body=body)


@pytest.mark.usefixtures("page")
def test_handlers_of_the_page_do_what_it_says(inbox):
    deliver(inbox, "a", "invoice.paid")
    deliver(inbox, "b", "invoice.paid")
    deliver(inbox, "c", "invoice.finalized")
    deliver(inbox, "d", "customer.deleted")

    while inbox.work():
        pass

    assert results(inbox) == [
        ("a", "done", 1, {"paid": 4900}),
        ("b", "done", 1, {"paid": 0}),
        ("c", "done", 1, {"answers": ["solvent: yes", "domestic: yes"], "paid": True}),
        ("d", "dead", 2, None),
    ]
    assert inbox.rows("SELECT * FROM shop_payments") == [("in_1", 4900)]
    captured = sys.modules["sentry_sdk"].captured
    assert [(error, tags["level"], tags["handler"]) for error, tags in captured] == [
        ("LookupError", "warning", "shop.close"),
        ("GiveUp", "error", "shop.close"),
    ]


@pytest.mark.usefixtures("page")
@responses.activate
def test_call_of_the_page_is_made_again_under_the_same_key(inbox):
    url = "https://mail.example/send"
    for answer in ({"status": 429, "headers": {"Retry-After": "0"}}, {"status": 200}):
        responses.post(url, **answer)
    deliver(inbox, "a", "charge.failed")

    while inbox.work():
        pass

    assert [row[1:3] for row in results(inbox)] == [("done", 1)]
    keys = {call.request.headers["Idempotency-Key"] for call in responses.calls}
    assert (len(responses.calls), len(keys)) == (2, 1)
