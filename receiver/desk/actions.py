"""All that an operator can ask or do, in the order in which it is told."""

from hookonce.receiver.desk import (
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
from hookonce.receiver.desk.registry import ACTIONS

__all__ = [
    "ACTIONS",
    "dead_letters",
    "events",
    "history",
    "maintenance",
    "pauses",
    "pulls",
    "quarantine",
    "rejected",
    "replays",
    "sources",
    "steps",
    "workers",
]
