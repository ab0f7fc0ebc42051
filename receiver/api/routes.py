"""All operations of the API, in the order of its documents."""

from hookonce.receiver.api import (
    dead_letters,
    events,
    history,
    maintenance,
    pauses,
    pulls,
    quarantine,
    rejected,
    replays,
    sources,
    steps,
    workers,
)

OPERATIONS = (
    *events.OPERATIONS,
    *dead_letters.OPERATIONS,
    *replays.OPERATIONS,
    *pulls.OPERATIONS,
    *steps.OPERATIONS,
    *rejected.OPERATIONS,
    *quarantine.OPERATIONS,
    *sources.OPERATIONS,
    *pauses.OPERATIONS,
    *workers.OPERATIONS,
    *history.OPERATIONS,
    *maintenance.OPERATIONS,
)
