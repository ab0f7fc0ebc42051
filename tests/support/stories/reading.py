"""Reads what the history checker compares: the ledger, the handlers' effects, the journal of their entries."""

import json
from pathlib import Path

from hookonce.receiver.encryption import OFF, body_context
from tests.support.stories.history import Conflict, Effect, Entry, Failure, Ledger, Row, Run

ROWS = """
SELECT e.source, e.event_id, e.type, e.status, e.deliveries, e.fingerprint, b.body, b.key_id
FROM hookonce.event_states e LEFT JOIN hookonce.bodies b ON b.event = e.id ORDER BY e.id
"""
RUNS = """
SELECT e.source, e.event_id, r.handler, r.status, r.attempts, r.cycle
FROM hookonce.run_states r JOIN hookonce.event_states e ON e.id = r.event ORDER BY e.id, r.handler
"""
FAILURES = """
SELECT e.source, e.event_id, f.handler, f.cycle, f.attempt, f.error
FROM hookonce.failures f JOIN hookonce.event_states e ON e.id = f.event ORDER BY f.id
"""
CONFLICTS = """
SELECT e.source, e.event_id, c.fingerprint, c.body, c.key_id
FROM hookonce.conflicts c JOIN hookonce.event_states e ON e.id = c.event ORDER BY c.id
"""
EFFECTS = "SELECT source, event_id, handler, attempt, digest FROM effects ORDER BY ctid"


def ledger(connection, *, dropped_bodies=False, keyring=OFF):
    """Read everything the ledger holds, opened."""
    found = [connection.execute(query).fetchall() for query in (ROWS, RUNS, FAILURES, CONFLICTS)]
    for number, fingerprint in ((0, -3), (3, -3)):
        found[number] = [_opened(row, row[fingerprint], keyring) for row in found[number]]
    kinds = (Row, Run, Failure, Conflict)
    rows = [[kind(*each) for each in some] for kind, some in zip(kinds, found, strict=True)]
    return Ledger(*rows, dropped_bodies=dropped_bodies)


def _opened(row, fingerprint, keyring):
    """A row of an event whose last columns are the body and its key's id: without that, and with the body opened."""
    *rest, body, key = row
    bond = body_context(row[0], row[1], fingerprint)
    return (*rest, None if body is None else keyring.open(body, key, bond))


def effects(connection):
    return [Effect(*row) for row in connection.execute(EFFECTS)]


def entries(directory):
    """What handlers wrote down when they were entered; a line cut short by a kill is none."""
    journal = Path(directory) / "entries"
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [Entry(*json.loads(line)[0]) for line in lines if line.endswith("]")]
