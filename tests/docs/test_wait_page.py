"""Runs the handlers of docs/how-to/wait.md in a worker."""

import json
import re
import types
from datetime import timedelta
from pathlib import Path

import pytest

from hookonce.jobs import handlers
from hookonce.jobs.capabilities import waits
from hookonce.jobs.handlers import Registry
from tests.support.inbox import inbox
from tests.support.waiting_handlers import sleep

__all__ = ["inbox"]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "wait.md"
SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
PAID = {"data": {"object": {"metadata": {"order": "o_1"}}}}
USES = {
    "fulfil": (("shop", "order.created", {"id": "o_1"}), ("stripe", "payment_intent.succeeded", PAID)),
    "deploy": (
        ("github", "deployment", {"deployment": {"sha": SHA}}),
        ("github", "check_run", {"check_run": {"head_sha": SHA, "conclusion": "success"}}),
    ),
    "refund": (("shop", "refund.asked", {"id": "r_1"}), ("desk", "refund.approved", {"refund": "r_1"})),
}
GOOD = {"fulfil": None, "deploy": {"deployed": True}, "refund": {"refunded": True}}
GIVEN_UP = {"fulfil": None, "deploy": {"deployed": False}, "refund": {"refunded": False}}


@pytest.fixture
def asked(inbox, monkeypatch):
    """What the page's handlers are; the people whom an agent has asked."""
    monkeypatch.setattr(handlers, "registry", Registry())
    module, people = types.ModuleType("shop"), []
    module.ask_a_person = lambda refund, _: people.append(refund)
    source = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    exec(compile(source, str(PAGE), "exec"), vars(module))  # noqa: S102  our own page
    for each in handlers.registry:
        inbox.registry.add(each)
    waits.register(inbox.registry)
    inbox.connection.execute("CREATE TABLE orders (id text, state text)")
    return people


def deliver(inbox, source, kind, data):
    body = json.dumps(data).encode()
    inbox.deliver(f"{source} {kind}", source=source, type=kind, provider="acme", body=body)
    inbox.work()


def result(inbox, handler):
    return dict(inbox.rows("SELECT handler, result FROM hookonce.runs WHERE status = 'done'"))[handler]


@pytest.mark.parametrize("is_first", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("handler", USES)
def test_handler_of_the_page_goes_on_with_what_came(inbox, asked, handler, is_first):
    for each in USES[handler] if is_first else reversed(USES[handler]):
        deliver(inbox, *each)

    assert result(inbox, handler) == GOOD[handler]
    assert inbox.rows("SELECT * FROM orders") == ([("o_1", "paid")] if handler == "fulfil" else [])
    assert asked == (["r_1"] if handler == "refund" else [])


@pytest.mark.parametrize("handler", USES)
def test_handler_of_the_page_goes_on_when_the_time_is_over(inbox, asked, handler):
    deliver(inbox, *USES[handler][0])

    sleep(inbox, timedelta(days=3))
    inbox.work()

    assert result(inbox, handler) == GIVEN_UP[handler]
    assert inbox.rows("SELECT * FROM orders") == ([("o_1", "given up")] if handler == "fulfil" else [])
    assert asked == (["r_1"] if handler == "refund" else [])
