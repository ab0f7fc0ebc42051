"""Handlers that wait for checks, as tests of waits have them, and the events of both sides."""

import json
from datetime import timedelta

from sqlalchemy import text

from hookonce.jobs.capabilities import waits
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.waits import Awaited

CI = Awaited("stripe", "check", "$.sha")
DAYS = timedelta(days=3)


def effect(event, tx, found):
    tx.execute(
        text("INSERT INTO effects VALUES (:event)"), {"event": f"{event.event_id} {found and found['n']}"}
    )


def fulfil(event, tx):
    effect(event, tx, event.wait("ci", event.data["sha"], timeout=DAYS))


def on(inbox, function, *, pattern="order", awaits=(("ci", CI),), **changes):
    """Register a handler that waits, and those of ours that note what has come."""
    inbox.on(function, pattern=pattern, awaits=awaits, **changes)
    waits.register(inbox.registry)


def deliver(inbox, event_id, kind, n=0, sha="abc", **changes):
    """Deliver an order or a check; return its number."""
    body = json.dumps({"sha": sha, "n": n}).encode()
    return inbox.deliver(event_id, type=kind, provider="acme", body=body, **changes)[0]


def sleep(inbox, by):
    """Have time pass for what waits."""
    while inbox.drains:  # a worker remembers until when nothing is due
        inbox.drains.pop().close()
    for statement in (
        "UPDATE hookonce.queue SET due_at = due_at - %s",
        "UPDATE hookonce.waits SET since = since - %s, until = until - %s WHERE ended_at IS NULL",
    ):
        inbox.connection.execute(statement, [by] * statement.count("%s"))


def prune(inbox):
    """Forget what was kept for long enough."""
    kept = timedelta(days=400)
    for _ in RetentionPass(Retention(kept, kept, kept, kept)).steps(inbox.connection):
        pass
