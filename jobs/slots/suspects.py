"""Suspects: runs that were under way when a process died, run alone by children of the supervisor.

Any run that was under way when a process died may have killed it: none of them is charged, and each becomes a suspect
(`receiver.ledger.runs.takeover`). A child of one slot runs them one after the other, and dies of the one that kills;
that one was alone then, and has used an attempt up. No other worker's death harms it, so that suspects come on however
often workers die.
"""

import time
from contextlib import suppress
from datetime import timedelta

from hookonce.jobs.claimer import SUSPECTS_INTERVAL
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.engines import AWAY
from hookonce.receiver.ledger.runs import due_rows

CHILDREN = 2
"""Of one supervisor, whose workers have many slots; a worker of one slot runs suspects itself."""
_LONG = timedelta(seconds=10)
PATIENCE = timedelta(minutes=1)
"""How long a child keeps what it has loaded, and its connections, when there is no suspect any more."""


def overdue(number: int) -> timedelta:
    """Return how long a suspect was due before a child takes it: the first child at once, the next one what it left."""
    return number * _LONG


def await_one(settings: Settings, number: int) -> None:
    """Wait until a suspect is due for a child; so long nothing of the user's is loaded, and no connection kept."""
    while True:
        with suppress(*AWAY), connections.connect(settings.database_url) as connection:
            if due_rows.is_suspect_due(connection, overdue(number)):
                return
        time.sleep(SUSPECTS_INTERVAL.total_seconds())
