"""All that an operator can ask or do, in the order in which it is told."""

from hookonce.receiver.desk import (
    dead_letters,
    diffs,
    entities,
    events,
    issues,
    listed_events,
    maintenance,
    pauses,
    rejected,
    replays,
    searches,
    sources,
    stats,
    steps,
    words,
)
from hookonce.receiver.desk.access import history, keys, tokens
from hookonce.receiver.desk.feeds import following, pulls
from hookonce.receiver.desk.registry import ACTIONS

__all__ = ["ACTIONS"]
