"""All operations of the API, in the order of its documents."""

from receiver.api import arrivals, events, history, replays, second_look, senders, upkeep, work

OPERATIONS = (
    *events.OPERATIONS,
    *replays.OPERATIONS,
    *arrivals.OPERATIONS,
    *second_look.OPERATIONS,
    *senders.OPERATIONS,
    *work.OPERATIONS,
    *history.OPERATIONS,
    *upkeep.OPERATIONS,
)
