"""Reads what the history checker compares: the ledger, the handlers' effects, the journal of their entries."""

import json
from pathlib import Path

from tests.stories.support.history import Conflict, Effect, Entry, Failure, Ledger, Row, Run

ROWS = """
SELECT e.source, e.event_id, e.type, e.status, e.deliveries, e.fingerprint, b.body
FROM events e LEFT JOIN bodies b ON b.event = e.id ORDER BY e.id
"""
RUNS = """
SELECT e.source, e.event_id, r.handler, r.status, r.attempts, r.cycle
FROM runs r JOIN events e ON e.id = r.event ORDER BY e.id, r.handler
"""
FAILURES = """
SELECT e.source, e.event_id, f.handler, f.cycle, f.attempt, f.error
FROM failures f JOIN events e ON e.id = f.event ORDER BY f.id
"""
CONFLICTS = """
SELECT e.source, e.event_id, c.fingerprint, c.body
FROM conflicts c JOIN events e ON e.id = c.event ORDER BY c.id
"""
EFFECTS = "SELECT source, event_id, handler, attempt, digest FROM effects ORDER BY ctid"


def ledger(connection, *, dropped_bodies=False):
    """Read everything the ledger holds."""
    found = [connection.execute(query).fetchall() for query in (ROWS, RUNS, FAILURES, CONFLICTS)]
    kinds = (Row, Run, Failure, Conflict)
    rows = [[kind(*each) for each in some] for kind, some in zip(kinds, found, strict=True)]
    return Ledger(*rows, dropped_bodies=dropped_bodies)


def effects(connection):
    return [Effect(*row) for row in connection.execute(EFFECTS)]


def entries(directory):
    """What handlers wrote down when they were entered; a line cut short by a kill is none."""
    journal = Path(directory) / "entries"
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [Entry(*json.loads(line)[0]) for line in lines if line.endswith("]")]
