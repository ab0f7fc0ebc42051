"""What a handler module imports, and the one function that RQ jobs name.

from jobs import GiveUp, RetryLater, on

@on("stripe", "invoice.paid")
def credit(event, tx):
    tx.execute(...)          # commits together with the run's `done`
    return {"credited": True}
"""

from jobs.drain import perform
from jobs.handlers import GiveUp, RetryLater, on
from jobs.received import ReceivedEvent

__all__ = ["GiveUp", "ReceivedEvent", "RetryLater", "on", "perform"]
