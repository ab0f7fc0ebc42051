"""Failures of an issue, written by the statement that a worker writes them with."""

from datetime import timedelta

from hookonce.jobs.handlers import Handler, Registry
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.stats.issues import Issue
from hookonce.receiver.ledger.store import store
from tests.support import claiming
from tests.support.new_event import new_event

ID = "1f0c2a9be477"


def die_of(
    connection, *ids, issue=ID, handler="shop.credit", place="shop/handlers.py:12", release="v1", **changes
):
    """Have new events of a handler die of an issue; return their ledger ids."""
    title = f"ValueError ({place})"
    handlers = Registry()
    handlers.add(
        Handler(handler, "stripe", "*", lambda *_: None, 1, (timedelta(0),) * 2, timedelta(seconds=5))
    )
    found = store(connection, [new_event(each, **changes) for each in ids])
    for run in claiming.claim(connection, handlers, slots=len(ids)).runs:
        error = f"ValueError: no such customer: {run.event.event_id} ({place})"
        ending = AttemptResult("dead", error=error, issue=Issue(issue, title, release))
        claiming.end(connection, run, ending)
    return [found["stripe", each].id for each in ids]
