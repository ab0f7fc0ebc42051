"""Tables of the ledger to SELECT from, and to join with your own (docs/reference/tables.md, "Ask by SQL").

from hookonce.ledger import event_states

select(Order, event_states.c.status).join(event_states, event_states.c.event_id == Order.event_id)
"""

from hookonce.receiver.ledger.database.public_tables import (
    event_states,
    events,
    failures,
    queue,
    run_states,
    runs,
)

__all__ = ["event_states", "events", "failures", "queue", "run_states", "runs"]
