"""Pauses, resumes, claims, deliveries and replays at once, each cut off at any moment; then everything is looked over.

Whatever happened, nothing is due and out of reach, and nothing of what is paused was run.
"""

import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.runs import due_rows, leases, parking, takeover
from hookonce.receiver.ledger.runs.ends import AttemptResult, LeaseLost
from hookonce.receiver.ledger.store import store
from tests.support import claiming
from tests.support.new_event import new_event
from tests.support.waiting import until

ROUNDS = {"deliver": 60, "work": 60, "pause": 25, "sweep": 25, "replay": 25, "cut": 15}
"""How often each thing is done, at least; then it is over."""
TAKES = {"both": ("a", "b"), "one": ("a",), "other": ("b",)}
SOURCES = ("stripe", "github", "slack")
PAUSABLE = [*(("source", name) for name in SOURCES[:2]), ("handler", "a"), ("handler", "b")]
RESULTS = (
    AttemptResult("done"),
    AttemptResult("waiting", error="no", delay=timedelta(0)),
    AttemptResult("waiting", error="no", delay=timedelta(hours=1)),
)
EXPIRE = "UPDATE hookonce.claims SET lease_until = now(); UPDATE hookonce.queue SET due_at = now()"
# Open, and nobody has paused its source, nor its handler.
REACHABLE = """
SELECT event, n, source, handler, waits, token FROM hookonce.queue
WHERE source NOT IN (SELECT name FROM hookonce.pauses WHERE kind = 'source')
      AND (handler IS NULL OR handler NOT IN (SELECT name FROM hookonce.pauses WHERE kind = 'handler'))
"""
BROKEN = {
    "what is parked is nobody's": (
        "SELECT * FROM hookonce.queue WHERE waits IS NOT NULL AND waits <> 'suspect' AND token IS NOT NULL"
    ),
    "what somebody is at is of a claim": (
        "SELECT * FROM hookonce.queue q WHERE token IS NOT NULL "
        "AND NOT EXISTS (SELECT FROM hookonce.claims c WHERE c.token = q.token)"
    ),
    "what is parked has a pause": (
        "SELECT * FROM hookonce.queue WHERE waits = 'handler' "
        "AND handler NOT IN (SELECT name FROM hookonce.pauses WHERE kind = 'handler') "
        "UNION ALL SELECT * FROM hookonce.queue WHERE waits = 'source:' || source "
        "AND source NOT IN (SELECT name FROM hookonce.pauses WHERE kind = 'source')"
    ),
    "what is parked for a source is of that source": (
        "SELECT * FROM hookonce.queue WHERE starts_with(waits, 'source:') AND waits <> 'source:' || source"
    ),
    "a handler has one row of an event": (
        "SELECT event, handler FROM hookonce.queue GROUP BY event, handler HAVING count(*) > 1"
    ),
    "no event is lost": "SELECT * FROM hookonce.event_states WHERE status = 'lost'",
}


@dataclass(frozen=True)
class Plan:
    name: str
    attempts: int = 1000
    timeout: timedelta = timedelta(seconds=30)
    limit: object = None
    is_long: bool = False
    batch: object = None


class Planner:
    def matching(self, _source, _provider, type_):
        return [Plan(name) for name in TAKES[type_]]

    def named(self, name):
        return Plan(name)

    def __iter__(self):
        return iter([Plan("a"), Plan("b")])


class Chaos:
    """Actors that each do one thing again and again, on connections that are cut now and then."""

    def __init__(self, url, seed):
        self.url, self.seed = url, seed
        self.is_over = threading.Event()
        self.mistakes = []
        self.done = dict.fromkeys(ROUNDS, 0)

    def run(self):
        actors = ["deliver", "deliver", "work", "work", "work", "pause", "pause", "sweep", "replay", "cut"]
        threads = [threading.Thread(target=self.act, args=[n, name]) for n, name in enumerate(actors)]
        for thread in threads:
            thread.start()
        try:
            until(lambda: self.mistakes or all(self.done[name] >= least for name, least in ROUNDS.items()))
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()

    def act(self, number, name):
        chance = random.Random(f"{self.seed} {number}")  # noqa: S311  no secret
        connection = None
        while not self.is_over.is_set():
            try:
                if connection is None or connection.closed:
                    connection = connections.connect(self.url)
                getattr(self, name)(connection, chance)
                self.done[name] += 1
            except (psycopg.OperationalError, LeaseLost, connections.LedgerUnavailable):
                with suppress(psycopg.Error):
                    connection.rollback()
            except BaseException as error:
                self.mistakes.append(f"{name}: {error!r}")
                raise
        connection.close()

    def deliver(self, connection, chance):
        source, kind = chance.choice(SOURCES), chance.choice(list(TAKES))
        ids = [f"{chance.random()}" for _ in range(chance.randint(1, 5))]
        store(connection, [new_event(event_id, source=source, type=kind) for event_id in ids])
        time.sleep(0.03)

    def work(self, connection, chance):
        before = standing(connection)
        claim = claiming.claim(connection, Planner(), limit=chance.randint(1, 50))
        lasting = before & standing(connection)
        self.mistakes += [
            f"run of {run.handler} on {run.event.source} was claimed though paused"
            for run in claim.runs
            for kind, name, _ in lasting
            if {"source": run.event.source, "handler": run.handler}[kind] == name
        ]
        for number, run in enumerate(claim.runs):
            if chance.random() < 0.1:  # it stops; what it has not started, it may let go of
                if chance.random() < 0.5:
                    leases.release(connection, claim.runs[number + 1 :])
                break
            claiming.end(connection, run, chance.choice(RESULTS))

    def pause(self, connection, chance):
        kind, name = chance.choice(PAUSABLE)
        if chance.random() < 0.4:
            pauses.pause(connection, kind, name, "test")
        else:
            pauses.resume(connection, kind, name, "test")
        time.sleep(chance.random() * 0.05)

    def sweep(self, connection, _):
        due_rows.is_anything_due(connection)
        parking.park_rows(connection)
        parking.unpark_left(connection)
        time.sleep(0.05)

    def replay(self, connection, chance):
        (top,) = connection.execute("SELECT coalesce(max(id), 1) FROM hookonce.event_states").fetchone()
        list(replays.replay(connection, [chance.randint(1, top) for _ in range(5)], "test", again=True))
        time.sleep(0.02)

    def cut(self, connection, chance):
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname = current_database() AND backend_type = 'client backend' ORDER BY random() LIMIT 1) AS one"
        )
        time.sleep(chance.random() * 0.08)


def standing(connection):
    """Give the pauses that there are, each with when it began: the same row is the same pause."""
    return set(connection.execute("SELECT kind, name, since FROM hookonce.pauses").fetchall())


def work_off(connection):
    """Do what workers and sweeps do until nothing is left; give the runs."""
    found = []
    parking.unpark_left(connection)
    while takeover.take_over(connection):
        pass
    while True:
        parking.park_rows(connection)
        claim = claiming.claim(connection, Planner())
        runs = list(claim.runs)
        if (suspect := claiming.claim_suspect(connection, Planner())) is not None:
            runs.append(suspect)
        if not (runs or claim.met or claim.waiting):
            return found
        for run in runs:
            claiming.end(connection, run, RESULTS[0])
        found += runs


def test_nothing_is_due_and_out_of_reach_whatever_happened(database_url):
    chaos = Chaos(database_url, seed=1)
    chaos.run()
    assert chaos.mistakes == []

    with connections.connect(database_url) as connection:
        connection.execute("DELETE FROM hookonce.pauses")
        for kind, name in (("source", "github"), ("handler", "b")):
            pauses.pause(connection, kind, name, "test")
        connection.execute(EXPIRE)
        ran = work_off(connection)

        assert connection.execute(REACHABLE).fetchall() == []
        assert ran
        assert {run.event.source for run in ran} == {"stripe", "slack"}
        assert {run.handler for run in ran} == {"a"}
        assert [name for name, query in BROKEN.items() if connection.execute(query).fetchall()] == []

        for kind, name in (("source", "github"), ("handler", "b")):
            pauses.resume(connection, kind, name, "test")
        assert {run.handler for run in work_off(connection)} == {"a", "b"}
        assert connection.execute(
            "SELECT DISTINCT status, due_at, waits FROM hookonce.event_states"
        ).fetchall() == [("done", None, None)]
