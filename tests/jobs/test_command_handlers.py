import sys
import types

import pytest

from hookonce import Refusal
from hookonce.jobs import handlers
from hookonce.jobs.configured import commands
from hookonce.jobs.handlers import HandlerError, Registry
from hookonce.receiver.config.commands import Command
from tests.support.inbox import effect


@pytest.fixture
def module(monkeypatch):
    made = types.ModuleType("shop_of_commands")
    monkeypatch.setitem(sys.modules, "shop_of_commands", made)
    monkeypatch.setattr(handlers, "registry", Registry())
    return made


def registered(handler):
    registry = Registry()
    commands.register(registry, {"payments": Command(name="payments", handler=handler, auth={}, attempts=3)})
    return list(registry)


def test_handler_takes_its_command_and_nothing_else(module):
    module.pay = lambda event, tx: (event, tx)

    (handler,) = registered("shop_of_commands:pay")

    assert (handler.name, handler.attempts, handler.function.__wrapped__) == (
        "commands.payments",
        3,
        module.pay,
    )
    assert handler.takes("commands.payments", "command", "payments")
    assert not handler.takes("commands.refunds", "command", "refunds")


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ("shop_of_commands:refund", "has no function 'refund'"),
        ("shop_of_commands:nothing", "must take two arguments"),
        ("shop_that_is_not_there:pay", "does not import"),
    ],
)
def test_handler_that_can_not_be_is_told(module, handler, said):
    module.nothing = lambda: None

    with pytest.raises(HandlerError, match=said):
        registered(handler)


@pytest.mark.parametrize("status", [200, 399, 500])
def test_refusal_is_of_the_client(status):
    with pytest.raises(ValueError, match="expected 400 to 499"):
        Refusal(status, "declined")


def test_refusal_of_a_webhook_is_a_dead_run(inbox):
    def refuse(event, tx):
        effect(event, tx)
        raise Refusal(409, "no_funds", "the account holds less")

    inbox.on(refuse)
    inbox.deliver("evt_1")
    inbox.work()

    assert inbox.runs() == [("evt_1", "refuse", "dead", 1)]
    assert inbox.effects() == []
