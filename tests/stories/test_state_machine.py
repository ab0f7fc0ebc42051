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
from pathlib import Path

import psycopg
import pytest
import redis
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

from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.replay import events as event_replays
from hookonce.receiver.ledger.runs import leases, takeover
from hookonce.receiver.ledger.runs.due_cursor import DueCursor
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended, LeaseLost
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from tests.support import claiming, status_moves
from tests.support.dying import Dying
from tests.support.event_sums import differences
from tests.support.waiting import until

SECRET = "whsec_of_the_machine"
ATTEMPTS = 2
TAKES = {"plain": ["note"], "shaky": ["note", "shaky"], "doomed": ["doomed", "note"], "nobody": []}
"""Type of event → the handlers that take it."""


@dataclass
class Run:
    """What the model knows of a run: `attempts` are those used up, `token` is the claim's that holds it."""

    status: str = "waiting"
    attempts: int = 0
    cycle: int = 1
    is_suspect: bool = False
    token: object = None

    @property
    def is_open(self):
        return self.status == "waiting"

    @property
    def shown(self):
        """What the ledger says of it: of one that is claimed, that it is running, and the attempt under way."""
        is_claimed = self.token is not None
        return ["running" if is_claimed else self.status, self.attempts + is_claimed, self.cycle]

    def give_back(self, *, is_suspect=False, attempts=0):
        """Lose the claim that it was in."""
        self.token = None
        self.is_suspect |= is_suspect
        self.attempts += attempts
        if attempts and self.attempts >= ATTEMPTS:
            self.status = "dead"


@dataclass
class Claimed:
    """What the model knows of a claim: its runs in their order, whether one was begun alone, and its lease is over."""

    runs: list
    is_charged: bool = False
    is_over: bool = False


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
        open_now = [run for run in self.runs.values() if run.is_open and run.token is None]
        return bool(open_now) or not (self.runs or self.ignored)

    @property
    def is_rung_for(self):
        """Whether a sweep finds it; suspects are looked for by workers."""
        return self.is_due and any(
            not run.is_suspect and run.is_open and run.token is None for run in self.runs.values() or [Run()]
        )

    def start(self):
        """The first claim makes the runs, or finds that nobody wants the event."""
        self.ignored = not TAKES[self.type]
        self.runs = self.runs or {name: Run() for name in TAKES[self.type]}

    def work(self):
        """Run what is due to its end."""
        self.start()
        for name, run in self.runs.items():
            while run.is_open and run.token is None:
                run.attempts += 1
                self._attempt(name, run)

    def _attempt(self, name, run):
        if succeeds(name, run.attempts):
            run.status = "done"
            self.done[name] += 1
        elif run.attempts == ATTEMPTS:
            run.status = "dead"


def succeeds(handler, attempt):
    return handler == "note" or (handler == "shaky" and attempt > 1)


def handle(name, journal):
    def function(event, tx):
        with journal.open("a") as lines:
            lines.write(f"{event.event_id} {name}\n")
        tx.execute(EFFECT, {"event": event.event_id, "handler": name})
        if not succeeds(name, event.attempt):
            raise ValueError("not this time")

    return function


EFFECT = text("INSERT INTO effects VALUES (:event, :handler)")
TABLES = (
    "hookonce.events, hookonce.bodies, hookonce.queue, hookonce.claims, hookonce.runs, "
    "hookonce.failures, hookonce.conflicts, hookonce.audit, hookonce.pauses, hookonce.event_counts, "
    "hookonce.lost_slices, effects, moves, noted"
)


def made(directory, database_url, redis_url):
    """Give the settings and the handlers of a process of the inbox."""
    environ = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "SECRET": SECRET}
    loaded = load_settings(environ | {"HOOKONCE_CONFIG": f"{directory}/hookonce.toml"})
    registry, never = Registry(), (timedelta(0), timedelta(0))
    for name in ("note", "shaky", "doomed"):
        function = handle(name, Path(directory) / "entries")
        for kind in (kind for kind, names in TAKES.items() if name in names):
            registry.add(
                Handler(name, "stripe", kind, function, ATTEMPTS, never, timedelta(seconds=30)),
            )
    return loaded, registry


def work(*place):
    """Do what a worker does when it is notified."""
    SingleSlot(*made(*place)).run_due()


class World:
    """The real thing: the application, a worker, a sweep and two connections, shared by all examples."""

    def __init__(self, directory, database_url, redis_url):
        (directory / "hookonce.toml").write_text('[sources.stripe]\nsecrets = ["env:SECRET"]\n')
        place = (directory, database_url, redis_url)
        self.dying = Dying(__name__, *place, log=directory / "failpoints")
        loaded, self.registry = made(*place)
        self.journal = directory / "entries"
        self.app = create_app(loaded)
        self.drain = SingleSlot(loaded, self.registry)
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
        until(lambda: self.app.extensions["hookonce"].is_idle)  # what rings follows the answer
        return answer.status_code, answer.json.get("code") or answer.json["status"]

    def entered(self):
        """How often handlers were entered since this was asked last, by event and handler."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        self.journal.unlink(missing_ok=True)
        return Counter(tuple(line.split()) for line in lines)

    def check_sums(self):
        """Compare the sums that are kept with a count of everything."""
        assert differences(self.database) == {}

    def close(self):
        self.dying.close()
        self.app.extensions["hookonce"].close()
        self.drain.close()
        self.sweep.close()
        self.redis.close()
        self.database.close()


class Inbox(RuleBasedStateMachine):
    """Everything that can happen to an inbox."""

    events = Bundle("events")
    claims = Bundle("claims")

    def __init__(self, world):
        super().__init__()
        self.world = world
        self.world.clean()
        self.kept = {}
        self.claimed = []
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
        if (
            self.due_in_the_ledger() and not self.paused
        ):  # it stopped on its budget, or looks for suspects, or from the queue's beginning, some seconds later
            self.world.drain._cursor = DueCursor()  # noqa: SLF001  a time that passes
            self.world.drain.run_suspects()
            self.world.drain.run_due()
        self.lose()
        if not self.paused:
            for kept in self.due():
                kept.work()

    @rule()
    def sweep(self):
        ((is_over,),) = self.world.rows(IS_OVER)
        found = self.world.sweep.once()
        is_due = any(kept.is_rung_for for kept in self.kept.values()) and not self.paused
        assert bool(found) == (is_due or is_over)
        assert not found or self.world.redis.llen("rq:queue:hookonce") == 1

    @precondition(lambda self: self.paused or self.due())
    @rule(target=claims, limit=st.integers(1, 3))
    def claim(self, limit):
        """A worker claims, and is gone for a while or for ever."""
        claim = claiming.claim(self.world.database, self.world.registry, limit=limit)
        assert not (self.paused and claim.runs)
        leased = {(run.event.event_id, run.handler) for run in claim.runs}
        for event_id, status in self.world.rows("SELECT event_id, status FROM hookonce.event_states"):
            kept = self.kept[event_id]
            if (
                kept.is_due
                and not kept.runs
                and (status == "ignored" or any(e == event_id for e, _ in leased))
            ):
                kept.start()
        return multiple(*self.hold(claim.runs))

    @precondition(lambda self: any(run.is_suspect for run in self.all_runs()))
    @rule(target=claims)
    def claim_alone(self):
        """The same of what is to be run alone."""
        run = claiming.claim_suspect(self.world.database, self.world.registry)
        assert run is None or not self.paused
        return multiple(*self.hold([run] if run else []))

    def hold(self, claimed):
        """Follow a claim: which runs it took is the ledger's to say, if only they could be had."""
        runs = [self.kept[each.event.event_id].runs[each.handler] for each in claimed]
        for run, each in zip(runs, claimed, strict=True):
            assert run.is_open
            assert run.token is None
            assert run.is_suspect == each.is_suspect
            assert each.attempt == run.attempts + 1
            run.token = each.token
        if runs:
            self.claimed.append(Claimed(runs, is_charged=claimed[0].is_suspect))
        return claimed

    @rule()
    def expire(self):
        claiming.lapse(self.world.database)
        for claim in self.claimed:
            claim.is_over = True

    @rule()
    def take_over(self):
        takeover.take_over(self.world.database, WorkerEnd(handlers=self.world.registry))
        self.lose()

    def lose(self):
        """Take over what leases are over of: the first that is left may have been started, and none behind it."""
        for claim in self.claimed:
            if claim.is_over:
                left = [run for run in claim.runs if run.token is not None]
                for number, run in enumerate(left):
                    is_first = number == 0
                    run.give_back(is_suspect=is_first, attempts=int(is_first and claim.is_charged))
        self.claimed = [claim for claim in self.claimed if not claim.is_over]

    @rule(claim=consumes(claims))
    def release(self, claim):
        """A worker lets go of what it has not started, if it still has it."""
        run = self.kept[claim.event.event_id].runs[claim.handler]
        is_ours = run.token == claim.token
        assert bool(leases.release(self.world.database, [claim])) == is_ours
        if is_ours:
            self.let_go(run)
            run.give_back()

    def let_go(self, run):
        """Take a run out of its claim."""
        for claim in self.claimed:
            claim.runs = [each for each in claim.runs if each is not run]

    @rule(claim=consumes(claims), status=st.sampled_from(["done", "waiting"]))
    def finish_late(self, claim, status):
        """The worker was only slow: its writes count if nobody else has had the run meanwhile, and never else."""
        kept = self.kept[claim.event.event_id]
        run = kept.runs[claim.handler]
        is_ours = run.token == claim.token
        if status == "waiting":
            ending = AttemptResult("waiting", error="not this time", most=ATTEMPTS)
            claiming.end(self.world.database, claim, ending)
            if is_ours:
                self.let_go(run)
                run.is_suspect = False
                run.give_back(attempts=1)
            return
        try:
            self.world.database.execute("BEGIN")
            self.world.database.execute(
                "INSERT INTO effects VALUES (%s, %s)", [claim.event.event_id, claim.handler]
            )
            ended = Ended([claim], [AttemptResult("done")], timedelta(0))
            claiming.ends.end(self.world.database, ended)
        except LeaseLost:
            self.world.database.execute("ROLLBACK")
            assert not is_ours
        else:
            assert is_ours
            self.let_go(run)
            run.attempts += 1
            run.status, run.token = "done", None
            kept.done[claim.handler] += 1

    @rule(which=st.integers(1, 12))
    def die(self, which):
        """A worker dies at some place or other; how far it came is the ledger's to say, within what may be."""
        self.world.entered()
        self.world.dying.at(which)
        self.lose()
        entered = self.world.entered()
        held = self.world.rows(HELD)
        known = [claim.runs for claim in self.claimed]
        for event_id, kept in self.kept.items():
            found = {name: rest for name, *rest in self.world.rows(RUNS_OF, event_id)}
            if not kept.runs and (found or self.world.rows(IS_IGNORED, event_id)):
                kept.start()
            for name, run in kept.runs.items():
                self.follow(event_id, name, run, found[name], entered[event_id, name])
        for token, is_charged, rows in held:
            runs = [self.kept[event_id].runs[name] for event_id, name in rows]
            if not any(run in each for run in runs for each in known):
                self.claimed.append(Claimed(runs, is_charged=is_charged))
            assert all(str(run.token) == token for run in runs)

    def follow(self, event_id, name, run, found, entered):
        """Follow a run that a worker may have had before it died: each attempt that counts was made."""
        status, attempts, cycle, is_suspect, token = found
        if run.token is not None:  # another's claim, which was left alone
            assert token == run.token
            return
        used = attempts - (status == "running")
        assert cycle == run.cycle
        assert run.attempts <= used <= run.attempts + entered
        assert run.is_open or (status, used) == (run.status, run.attempts)
        if run.is_open and status == "done":
            self.kept[event_id].done[name] += 1
        assert status != "dead" or used == ATTEMPTS
        run.status = "waiting" if status == "running" else status
        run.attempts, run.token, run.is_suspect = used, token, is_suspect

    @rule(event_id=events)
    def replay(self, event_id):
        kept = self.kept[event_id]
        [(number,)] = self.world.rows("SELECT id FROM hookonce.event_states WHERE event_id = %s", event_id)
        [outcome] = event_replays.replay(self.world.database, [number], "the machine", again=True)
        spent = [n for n, r in kept.runs.items() if not r.is_open or (r.token is None and r.attempts)]
        assert sorted(outcome.handlers) == sorted(spent)
        assert sorted(outcome.left) == sorted(n for n, r in kept.runs.items() if r.token is not None)
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
            (event_id, name): run.shown
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

    @invariant()
    def nothing_is_lost(self):
        assert self.world.rows("SELECT id FROM hookonce.event_states WHERE status = 'lost'") == []
        assert self.world.rows(IN_TWO_PLACES) == []

    @invariant()
    def sums_are_those_of_a_full_count(self):
        self.world.check_sums()

    def forgotten(self):
        """Whether a worker has forgotten what it had claimed; of the last of it, it hears at a flush."""
        self.world.drain.run_due()
        return self.world.rows("SELECT token FROM hookonce.claims") == []

    def due(self):
        return [kept for kept in self.kept.values() if kept.is_due]

    def due_in_the_ledger(self):
        return self.world.rows(DUE)[0][0]

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
        until(self.forgotten, what="the end of all claims")


BODIES = (
    "SELECT e.event_id, b.body FROM hookonce.event_states e JOIN hookonce.bodies b ON b.event = e.id "
    "AND b.received_at = e.received_at"
)
RUNS = """
SELECT e.event_id, r.handler, r.status, r.attempts, r.cycle
FROM hookonce.run_states r JOIN hookonce.event_states e ON e.id = r.event
"""
RUNS_OF = """
SELECT r.handler, r.status, r.attempts, r.cycle, coalesce(r.waits = 'suspect', false), r.token
FROM hookonce.run_states r JOIN hookonce.events e ON e.id = r.event WHERE e.event_id = %s
"""
IS_IGNORED = """
SELECT FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event WHERE e.event_id = %s AND r.status = 'ignored'
"""
HELD = """
SELECT c.token::text, c.is_suspect AND c.started_at IS NOT NULL,
       array_agg(ARRAY[e.event_id, q.handler] ORDER BY t.number)
FROM hookonce.claims c, unnest(c.events, c.places) WITH ORDINALITY AS t (event, n, number)
JOIN hookonce.queue q USING (event, n) JOIN hookonce.events e ON e.id = q.event WHERE q.token = c.token
GROUP BY c.token
"""
IS_OVER = "SELECT EXISTS (SELECT FROM hookonce.claims WHERE lease_until <= now())"
DUE = "SELECT count(DISTINCT event) FROM hookonce.queue WHERE token IS NULL AND due_at <= now()"
IN_TWO_PLACES = """
SELECT event, handler FROM hookonce.run_states GROUP BY event, handler HAVING count(*) > 1
"""


@pytest.fixture
def world(tmp_path, database_url, redis_url):
    world = World(tmp_path, database_url, redis_url)
    yield world
    world.close()


def test_inbox_does_what_the_model_says_whatever_happens(world):
    bounded = settings(max_examples=max(30, settings().max_examples // 10), stateful_step_count=40)

    run_state_machine_as_test(lambda: Inbox(world), settings=bounded)
