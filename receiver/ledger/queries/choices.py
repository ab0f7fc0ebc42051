"""Choices of a filter: the sources, types, accounts and handlers of the newest events."""

from dataclasses import dataclass

import psycopg

from hookonce.receiver.ledger.queries import event_filter

EVENTS_LOOKED_AT = 5000
MAX_CHOICES = 100
"""Types and accounts, the most frequent ones."""
RECENT_RUNS = 10_000
"""Runs, open and ended, looked at for names of handlers; there is no index by handler, and an operator asks of living
ones."""

_CHOICES = """
WITH newest AS MATERIALIZED (
    SELECT id, type, account FROM hookonce.events ORDER BY id DESC LIMIT %(events)s
), known AS (
    SELECT 'type' AS kind, type AS name, count(*) AS n FROM newest GROUP BY type
    UNION ALL
    SELECT 'account', account, count(*) FROM newest WHERE account IS NOT NULL GROUP BY account
)
SELECT kind, name FROM (
    SELECT kind, name, row_number() OVER (PARTITION BY kind ORDER BY n DESC, name) AS place FROM known) AS ranked
WHERE place <= %(most)s ORDER BY kind, name
"""
# Workers name handlers that have not run yet; a run without one is of an event that nobody takes.
_HANDLERS = """
SELECT handler FROM (SELECT handler FROM hookonce.runs ORDER BY event DESC LIMIT %(most)s) AS ended WHERE handler <> ''
UNION SELECT handler FROM (SELECT handler FROM hookonce.queue ORDER BY event DESC LIMIT %(most)s) AS open
      WHERE handler IS NOT NULL
UNION SELECT handler FROM hookonce.handlers ORDER BY handler
"""


@dataclass(frozen=True, slots=True)
class Choices:
    """Names in order; of types and accounts the most frequent of the newest `EVENTS_LOOKED_AT` events."""

    sources: list[str]
    types: list[str]
    accounts: list[str]
    handlers: list[str]


def choices(connection: psycopg.Connection) -> Choices:
    """Return what events can be chosen by."""
    found: dict[str, list[str]] = {"type": [], "account": []}
    for kind, name in connection.execute(_CHOICES, {"events": EVENTS_LOOKED_AT, "most": MAX_CHOICES}):
        found[kind].append(name)
    return Choices(event_filter.sources(connection), found["type"], found["account"], handlers(connection))


def handlers(connection: psycopg.Connection) -> list[str]:
    """Return the names of the handlers of recent runs, and of those that workers have named lately."""
    return [row[0] for row in connection.execute(_HANDLERS, {"most": RECENT_RUNS})]
