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

from typing import TYPE_CHECKING

from hookonce import late_names

if TYPE_CHECKING:
    from hookonce.testing.clock import Clock as Clock
    from hookonce.testing.crashes import crash_at as crash_at
    from hookonce.testing.events import event as event
    from hookonce.testing.inbox import Delivered as Delivered
    from hookonce.testing.inbox import Inbox as Inbox
    from hookonce.testing.verdicts import dead_with as dead_with
    from hookonce.testing.verdicts import handled_once as handled_once
    from hookonce.testing.verdicts import ignored as ignored
else:
    __getattr__ = late_names.getter(__name__)
