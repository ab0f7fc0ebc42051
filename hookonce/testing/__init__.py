"""Tests of your handlers: events from samples, a real inbox, crashes at will (docs/how-to/testing.md).

from hookonce.testing import dead_with, event, handled_once

def test_invoice_is_credited(tx):
    credit(event("stripe", "invoice.paid", set={"data.object.amount_paid": 500}), tx)

def test_invoice_is_credited_once(inbox):
    handled_once(inbox.deliver("stripe", "invoice.paid", times=3))

`plugin` has the fixtures of pytest, `servers` what they run on, `events` and `inbox` what tests ask for, with its
`clock`, the `crashes` in it and what is `waiting` in it, and `verdicts` what they assert; `django` has the test case of
`manage.py test`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookonce.testing.clock import Clock
    from hookonce.testing.crashes import crash_at
    from hookonce.testing.events import event
    from hookonce.testing.inbox import Delivered, Inbox
    from hookonce.testing.verdicts import dead_with, handled_once, ignored

__all__ = ["Clock", "Delivered", "Inbox", "crash_at", "dead_with", "event", "handled_once", "ignored"]
_PLACES = {
    "Clock": "clock",
    "Delivered": "inbox",
    "Inbox": "inbox",
    "crash_at": "crashes",
    "dead_with": "verdicts",
    "event": "events",
    "handled_once": "verdicts",
    "ignored": "verdicts",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  what a module has
    """Import a name when it is asked for: pytest loads the plugin in every run, and most runs need nothing of it."""
    if name in _PLACES:
        return getattr(import_module(f"hookonce.testing.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
