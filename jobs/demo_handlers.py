"""The handlers of `hookonce demo`: one of each ending, each leaving a row as its effect.

The row is written through `tx` before anything can go wrong, so rows of failed attempts must be gone.
"""

from sqlalchemy import Connection, text

from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.handlers import GiveUp
from hookonce.jobs.registration import on

SOON = (0.01, 0.02)
"""Seconds between attempts; a demo is short."""
FAILURES = 2

_EFFECT = text("INSERT INTO demo_effects (source, event_id, attempt) VALUES (:source, :event_id, :attempt)")


@on("stripe", "invoice.paid", name="credit")
@on("github", "push", name="build")
@on("github", "pull_request", name="review")
def work(event: ReceivedEvent, tx: Connection) -> dict[str, str]:
    """Succeed at once."""
    _write(event, tx)
    return {"handled": event.type}


@on("stripe", "customer.subscription.updated", name="change plan", backoff=SOON)
def work_at_last(event: ReceivedEvent, tx: Connection) -> None:
    """Fail twice, then succeed."""
    _write(event, tx)
    if event.attempt <= FAILURES:
        raise ConnectionError(f"the plan service does not answer (attempt {event.attempt}, on purpose)")


@on("stripe", "charge.failed", name="dun", attempts=2, backoff=SOON)
def work_never(event: ReceivedEvent, tx: Connection) -> None:
    """Fail until the attempts are used up."""
    _write(event, tx)
    raise RuntimeError("no mail server (on purpose)")


@on("stripe", "charge.dispute.created", name="answer dispute")
def give_up(event: ReceivedEvent, tx: Connection) -> None:
    """See that no attempt can help."""
    _write(event, tx)
    raise GiveUp("a person must look at this (on purpose)")


def _write(event: ReceivedEvent, tx: Connection) -> None:
    values = {"source": event.source, "event_id": event.event_id, "attempt": event.attempt}
    tx.execute(_EFFECT, values)
