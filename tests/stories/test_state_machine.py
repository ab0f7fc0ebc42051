"""The whole inbox against a dict: whatever order things happen in, each event is kept once and handled once.

One process plays sender, receiver, worker, sweep and operator, on real servers. The model is what a reader of
the guarantees would expect; after every step the ledger must say the same.
"""

import hashlib
import hmac
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
import pytest
import redis
from hookonce.receiver.ledger.runs.run_end import AttemptResult, LeaseLost
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from hookonce.jobs.drain import DRAIN_BUDGET, Drain
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.replay import events as event_replays
from hookonce.receiver.ledger.runs import claims, run_end
from tests.support import status_moves

SECRET = "whsec_of_the_machine"
ATTEMPTS = 2
TAKES = {"plain": ["note"], "shaky": ["note", "shaky"], "doomed": ["doomed", "note"], "nobody": []}
"""Type of event → the handlers that take it."""


@dataclass
class Run:
    """What the model knows of a run. `leased`: nobody else may have it now; `token`: who started it last."""

    status: str = "waiting"
    attempts: int = 0
    cycle: int = 1
    leased: bool = False
    token: object = None

    @property
    def is_open(self):
        return self.status in {"waiting", "running"}


@dataclass
class Kept:
    """What the model knows of an event."""

    body: bytes
    type: str
    runs: dict = field(default_factory=dict)
    ignored: bool = False
    others: set = field(default_factory=set)
    done: Counter = field(default_factory=Counter)

    @property
    def is_due(self):
        open_now = [run for run in self.runs.values() if run.is_open and not run.leased]
        return bool(open_now) or not (self.runs or self.ignored)

    def start(self):
        """The first claim makes the runs, or finds that nobody wants the event."""
        self.ignored = not TAKES[self.type]
        self.runs = self.runs or {name: Run() for name in TAKES[self.type]}

    def work(self):
        """Run what is due to its end."""
        self.start()
        for name, run in self.runs.items():
            if run.is_open and not run.leased:
                if run.status == "running" and run.attempts == ATTEMPTS:
                    run.status = "dead"
                while run.is_open:
                    run.attempts += 1
                    self._attempt(name, run)
                run.token = None

    def _attempt(self, name, run):
        if succeeds(name, run.attempts):
            run.status = "done"
            self.done[name] += 1
        elif run.attempts == ATTEMPTS:
            run.status = "dead"


def succeeds(handler, attempt):
    return handler == "note" or (handler == "shaky" and attempt > 1)


def handle(name):
    def function(event, tx):
        tx.execute(EFFECT, {"event": event.event_id, "handler": name})
        if not succeeds(name, event.attempt):
            raise ValueError("not this time")

    return function


EFFECT = text("INSERT INTO effects VALUES (:event, :handler)")
TABLES = (
    "hookonce.events, hookonce.bodies, hookonce.runs, hookonce.failures, hookonce.conflicts, "
    "hookonce.audit, hookonce.pauses, effects, moves"
)
EXPIRE = """
WITH over AS (
    UPDATE hookonce.runs SET lease_until = now(), due_at = now() WHERE token IS NOT NULL RETURNING event
)
UPDATE hookonce.events SET due_at = now() WHERE id IN (SELECT event FROM over)
"""


class World:
    """The real thing: the application, a worker, a sweep and two connections, shared by all examples."""

    def __init__(self, directory, database_url, redis_url):
        (directory / "hookonce.toml").write_text('[sources.stripe]\nsecrets = ["env:SECRET"]\n')
        environ = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "SECRET": SECRET}
        loaded = load_settings(environ | {"HOOKONCE_CONFIG": str(directory / "hookonce.toml")})
        self.app = create_app(loaded)
        self.registry = Registry()
        for name in ("note", "shaky", "doomed"):
            for kind in (kind for kind, names in TAKES.items() if name in names):
                never = (timedelta(0), timedelta(0))
                self.registry.add(
                    Handler(name, "stripe", kind, FUNCTIONS[name], ATTEMPTS, never, timedelta(seconds=30))
                )
        self.drain = Drain(loaded, self.registry)
        self.sweep = Sweep(loaded)
        self.redis = redis.Redis.from_url(redis_url)
        self.database = psycopg.connect(database_url, autocommit=True)
        self.database.execute("CREATE TABLE effects (event text, handler text)")
        status_moves.record(self.database)

    def clean(self):
        self.database.execute(f"TRUNCATE {TABLES} CASCADE")
        self.redis.flushdb()

    def rows(self, query, *values):
        return self.database.execute(query, values).fetchall()

    def post(self, body, *, secret=SECRET):
        at = str(int(time.time()))
        signature = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
        headers = {"Stripe-Signature": f"t={at},v1={signature}"}
        answer = self.app.test_client(use_cookies=False).post("/hooks/stripe", data=body, headers=headers)
        return answer.status_code, answer.json.get("code") or answer.json["status"]

    def close(self):
        self.app.extensions["hookonce"].close()
        self.drain.close()
        self.sweep.close()
        self.redis.close()
        self.database.close()


FUNCTIONS = {name: handle(name) for name in ("note", "shaky", "doomed")}


class Inbox(RuleBasedStateMachine):
    """Everything that can happen to an inbox."""

    events = Bundle("events")
    claims = Bundle("claims")

    def __init__(self, world):
        super().__init__()
        self.world = world
        self.world.clean()
        self.kept = {}
        self.paused = False

    @rule(target=events, kind=st.sampled_from(sorted(TAKES)))
    def deliver(self, kind):
        event_id = f"evt_{len(self.kept)}"
        body = json.dumps({"id": event_id, "type": kind}).encode()
        assert self.world.post(body) == (200, "accepted")
        self.kept[event_id] = Kept(body, kind)
        return event_id

    @rule(target=events, kind=st.sampled_from(sorted(TAKES)))
    def deliver_twins(self, kind):
        event_id = f"evt_{len(self.kept)}"
        body = json.dumps({"id": event_id, "type": kind}).encode()
        with ThreadPoolExecutor(3) as pool:
            answers = sorted(pool.map(self.world.post, [body] * 3))
        assert answers == [(200, "accepted"), (200, "duplicate"), (200, "duplicate")]
        self.kept[event_id] = Kept(body, kind)
        return event_id

    @rule(event_id=events)
    def redeliver(self, event_id):
        assert self.world.post(self.kept[event_id].body) == (200, "duplicate")

    @rule(event_id=events, amount=st.integers(1, 2))
    def tamper(self, event_id, amount):
        body = json.dumps({"id": event_id, "type": "plain", "amount": amount}).encode()
        assert self.world.post(body) == (200, "duplicate")
        self.kept[event_id].others.add(body)

    @rule(number=st.integers(0, 3))
    def forge(self, number):
        """A copy of an event that is known, or of one that is yet to come."""
        body = json.dumps({"id": f"evt_{number}", "type": "plain"}).encode()
        assert self.world.post(body, secret="another") == (401, "bad_signature")

    @rule()
    def flush(self):
        self.world.redis.flushdb()

    @rule()
    def work(self):
        self.world.drain.run_due()
        if self.due_in_the_ledger() and not self.paused:  # it stopped on its budget
            self.world.drain.run_due()
        if not self.paused:
            for kept in self.due():
                kept.work()

    @rule()
    def sweep(self):
        found = self.world.sweep.once()
        assert bool(found) == (bool(self.due()) and not self.paused)
        assert not found or self.world.redis.llen("rq:queue:hookonce") == 1

    @precondition(lambda self: self.paused or self.due())
    @rule(target=claims, limit=st.integers(1, 3), is_over=st.booleans())
    def crash(self, limit, is_over):
        """A worker claims and is gone; what it started has cost an attempt, the rest nothing."""
        claim = claims.claim(self.world.database, self.world.registry, budget=DRAIN_BUDGET, limit=limit)
        assert claim.events <= limit
        assert not (self.paused and claim.events)
        leased = {(run.event.event_id, run.handler) for run in claim.runs}
        for event_id, status in self.world.rows("SELECT event_id, status FROM hookonce.event_states"):
            self.adopt(self.kept[event_id], event_id, status, leased)
        started = [self.start(first) for first in claim.runs[:1]]
        if is_over:
            self.expire()
        return multiple(*started)

    def start(self, first):
        run = self.kept[first.event.event_id].runs[first.handler]
        run.status, run.token = "running", first.token
        run.attempts += 1
        assert run.attempts == first.attempt
        return first

    def adopt(self, kept, event_id, status, leased):
        """Follow the claim where the order is the ledger's own: which of the due events it took."""
        if kept.is_due and not kept.runs and (status == "ignored" or any(e == event_id for e, _ in leased)):
            kept.start()
        for name, run in kept.runs.items():
            if (event_id, name) in leased:
                assert run.is_open
                assert not run.leased
                run.status, run.leased, run.token = "waiting", True, None
            elif run.status == "running" and not run.leased and run.attempts == ATTEMPTS:
                [(now,)] = self.world.rows(STATUS, event_id, name)
                run.status = now
                assert now in {"running", "dead"}

    @rule()
    def expire(self):
        self.world.database.execute(EXPIRE)
        for run in self.all_runs():
            run.leased = False

    @rule(claim=consumes(claims))
    def finish_late(self, claim):
        """The worker was only slow: its writes count if nobody else has had the run meanwhile, and never else."""
        kept = self.kept[claim.event.event_id]
        run = kept.runs[claim.handler]
        is_ours = run.status == "running" and run.token == claim.token
        try:
            self.world.database.execute("BEGIN")
            self.world.database.execute(
                "INSERT INTO effects VALUES (%s, %s)", [claim.event.event_id, claim.handler]
            )
            run_end.end(self.world.database, claim, AttemptResult("done"))
        except LeaseLost:
            self.world.database.execute("ROLLBACK")
            assert not is_ours
        else:
            assert is_ours
            run.status, run.leased = "done", False
            kept.done[claim.handler] += 1

    @rule(event_id=events)
    def replay(self, event_id):
        kept = self.kept[event_id]
        [(number,)] = self.world.rows("SELECT id FROM hookonce.event_states WHERE event_id = %s", event_id)
        [outcome] = event_replays.replay(self.world.database, [number], "the machine")
        spent = [n for n, r in kept.runs.items() if not r.is_open or (r.status == "waiting" and r.attempts)]
        assert sorted(outcome.handlers) == sorted(spent)
        assert sorted(outcome.left) == sorted(n for n, r in kept.runs.items() if r.status == "running")
        kept.ignored = False
        for name in spent:
            kept.runs[name] = Run(cycle=kept.runs[name].cycle + 1)

    @precondition(lambda self: not self.paused)
    @rule()
    def pause(self):
        pauses.pause(self.world.database, "source", "stripe", "the machine")
        self.paused = True

    @precondition(lambda self: self.paused)
    @rule()
    def resume(self):
        pauses.resume(self.world.database, "source", "stripe", "the machine")
        self.paused = False

    @precondition(lambda self: self.paused)
    @rule()
    def resume_and_be_killed(self):
        """The pause is gone, and whoever ended it before he came to what was parked; a sweep does that for him."""
        self.world.database.execute("DELETE FROM hookonce.pauses")
        self.paused = False
        self.world.sweep.once()

    @invariant()
    def ledger_holds_each_event_once(self):
        found = self.world.rows(BODIES)
        assert Counter(found) == Counter((event_id, kept.body) for event_id, kept in self.kept.items())

    @invariant()
    def runs_are_where_the_model_has_them(self):
        found = {(e, h): rest for e, h, *rest in self.world.rows(RUNS)}
        expected = {
            (event_id, name): [run.status, run.attempts, run.cycle]
            for event_id, kept in self.kept.items()
            for name, run in kept.runs.items()
        }
        assert found == expected

    @invariant()
    def moves_are_those_that_are_declared(self):
        assert status_moves.made(self.world.database) <= status_moves.declared()

    @invariant()
    def effects_are_one_for_each_done(self):
        found = Counter(self.world.rows("SELECT event, handler FROM effects"))
        done = Counter({(e, name): n for e, kept in self.kept.items() for name, n in kept.done.items()})
        assert found == done

    @invariant()
    def other_bodies_are_kept_apart(self):
        found = self.world.rows(
            "SELECT e.event_id, c.body FROM hookonce.conflicts c JOIN hookonce.event_states e ON e.id = c.event"
        )
        assert set(found) == {(e, body) for e, kept in self.kept.items() for body in kept.others}

    @invariant()
    def everything_open_is_due_or_leased(self):
        assert self.due_in_the_ledger() == len(self.due())

    def due(self):
        return [kept for kept in self.kept.values() if kept.is_due]

    def due_in_the_ledger(self):
        return self.world.rows("SELECT count(*) FROM hookonce.event_states WHERE due_at <= now()")[0][0]

    def all_runs(self):
        return [run for kept in self.kept.values() for run in kept.runs.values()]

    def teardown(self):
        """In the end, with nothing in the way, everything ends."""
        self.resume_and_be_killed()
        self.expire()
        self.work()
        for check in (self.runs_are_where_the_model_has_them, self.effects_are_one_for_each_done):
            check()
        assert not any(run.is_open for run in self.all_runs())


BODIES = (
    "SELECT e.event_id, b.body FROM hookonce.event_states e JOIN hookonce.bodies b ON b.event = e.id "
    "AND b.received_at = e.received_at"
)
RUNS = """
SELECT e.event_id, r.handler, r.status, r.attempts, r.cycle
FROM hookonce.run_states r JOIN hookonce.event_states e ON e.id = r.event
"""
STATUS = """
SELECT r.status FROM hookonce.run_states r JOIN hookonce.events e ON e.id = r.event
WHERE e.event_id = %s AND r.handler = %s
"""


@pytest.fixture
def world(tmp_path, database_url, redis_url):
    world = World(tmp_path, database_url, redis_url)
    yield world
    world.close()


def test_inbox_does_what_the_model_says_whatever_happens(world):
    bounded = settings(max_examples=max(30, settings().max_examples // 10), stateful_step_count=40)

    run_state_machine_as_test(lambda: Inbox(world), settings=bounded)
