"""Runs the handlers of docs/how-to/steps.md in a worker."""

import re
import types
from pathlib import Path

import pytest

from hookonce.jobs import handlers
from hookonce.jobs.handlers import Registry
from tests.jobs.test_steps import Cut
from tests.support.inbox import inbox

__all__ = ["inbox"]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "steps.md"
BODY = b'{"data": {"object": {"amount_due": 4900, "amount": 1, "customer": "cus_1"}}}'


class Outside:
    """Stands for the bank, the mail and the partner; its first call is heard and never answered."""

    def __init__(self):
        self.calls = []

    def charge(self, *_, idempotency_key=None):
        self.calls.append(idempotency_key)
        if len(self.calls) == 1:
            raise Cut
        return {"id": "answered"}

    send = wire = charge

    async def tell(self, *_, idempotency_key):
        return self.charge(idempotency_key=idempotency_key)

    def find(self, idempotency_key):
        return {"id": "found"} if idempotency_key in self.calls else None


@pytest.fixture
def outside(inbox, monkeypatch):
    monkeypatch.setattr(handlers, "registry", Registry())
    made = Outside()
    module = types.ModuleType("shop")
    module.bank = module.mail = module.partner = module.old_bank = made
    source = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    exec(compile(source, str(PAGE), "exec"), vars(module))  # noqa: S102  our own page
    for each in handlers.registry:
        inbox.registry.add(each)
    return made


def work(inbox):
    """Work, and let the pauses between attempts pass."""
    for _ in range(3):
        inbox.work()
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")


@pytest.mark.parametrize(
    ("type_of", "status", "calls"),
    [("invoice.finalized", "done", 2), ("payout.paid", "dead", 1), ("refund.created", "done", 2)],
)
def test_handler_of_the_page_does_what_the_page_says(inbox, outside, type_of, status, calls):
    inbox.deliver("a", type=type_of, body=BODY)

    work(inbox)

    assert [row[2:] for row in inbox.runs()] == [(status, 2)]
    assert len(outside.calls) == calls
    if type_of == "invoice.finalized":
        assert inbox.rows("SELECT result FROM hookonce.run_states") == [({"id": "found"},)]
