"""An invoice is booked once: `pytest`."""

from hookonce.testing import Inbox, handled_once


def test_invoice_that_comes_three_times_is_booked_once(inbox: Inbox) -> None:
    """Deliver it as its sender does, and let the worker's code run."""
    handled_once(inbox.deliver("stripe", "invoice.paid", times=3), "webhooks.book")

    assert inbox.execute("SELECT count(*) FROM payments") == [(1,)]
