"""Steps of handlers, put into the ledger."""

import uuid

from hookonce.receiver.ledger import store
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state

STOPPED = "it was cut off, or failed, and nobody knows whether it happened"


def event_with_steps(ledger, *steps, handlers=("shop.pay",), run="dead"):
    """An event whose handlers have steps: (name, state, result)."""
    event = store.store(ledger, [new_event("evt_1")])["stripe", "evt_1"].id
    for handler in handlers:
        for name, state, result in steps:
            ledger.execute(
                "INSERT INTO hookonce.steps (event, handler, name, state, owner, result, note) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [event, handler, name, state, uuid.uuid4(), result, None if result else STOPPED],
            )
    put_into_state(ledger, event, runs=[(handler, run, 1) for handler in handlers])
    return event


CHARGED = ("charge", "completed", b'{"id": "ch_1"}')
UNKNOWN = ("mail", "failed_final", None)


def left(ledger):
    return ledger.execute("SELECT handler, name, state FROM hookonce.steps ORDER BY 1, 2").fetchall()
