"""An inbox with handlers of a test's own, worked in the test's process."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from sqlalchemy import text

from hookonce.jobs import claimer, stopping
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

OPEN = "SELECT FROM hookonce.event_states WHERE status NOT IN ('done', 'dead', 'ignored')"
"""Events that have not ended; one of which nothing is left is lost, and has no time at which it is due either."""


@dataclass
class Inbox:
    """An inbox with a registry of its own, in one process."""

    settings: object
    connection: object
    drains: list = field(default_factory=list)
    registry: Registry = field(default_factory=Registry)
    transactions: type = HandlerTransactions

    def on(self, function, *, pattern="*", **changes):
        options = {"attempts": 3, "backoff": (timedelta(0), timedelta(0))}
        options |= {"timeout": timedelta(minutes=1)} | changes
        self.registry.add(Handler(function.__name__, "stripe", pattern, function, **options))

    def deliver(self, *ids, **changes):
        answers = store(self.connection, [new_event(event_id, **changes) for event_id in ids])
        return [answers[changes.get("source", "stripe"), event_id].id for event_id in ids]

    def work(self, ids=()):
        if not self.drains:
            self.drains.append(SingleSlot(self.settings, self.registry, self.transactions))
        return self.drains[0].run_due(ids)

    def steal(self):
        """Have another worker have whatever is under way."""
        for token in self.rows("SELECT token FROM hookonce.claims"):
            self.connection.execute(
                "WITH stolen AS (UPDATE hookonce.claims SET token = gen_random_uuid() WHERE token = %s RETURNING token)"
                " UPDATE hookonce.queue q SET token = stolen.token FROM stolen WHERE q.token = %s",
                [*token, *token],
            )

    def lapse(self):
        """Have the leases of all claims be over."""
        self.connection.execute("UPDATE hookonce.claims SET lease_until = now()")

    def rows(self, query):
        return self.connection.execute(query).fetchall()

    def runs(self):
        return self.rows(
            "SELECT e.event_id, r.handler, r.status, r.attempts "
            "FROM hookonce.run_states r JOIN hookonce.event_states e ON e.id = r.event ORDER BY 1, 2"
        )

    def effects(self):
        return [row[0] for row in self.rows("SELECT event FROM effects ORDER BY event")]


def effect(event, tx):
    tx.execute(text("INSERT INTO effects (event) VALUES (:event)"), {"event": event.event_id})


@pytest.fixture
def inbox(database_url, redis_url, monkeypatch):
    # On a machine that stands still for seconds a worker would stop early, and count on the sweep for the rest.
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(minutes=1))
    settings = load_settings(
        {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": "/dev/null"}
    )
    with connections.connect(database_url) as connection:
        connection.execute("CREATE TABLE effects (event text)")
        made = Inbox(settings, connection)
        yield made
    for each in made.drains:
        each.close()
    stopping.stopping.clear()
