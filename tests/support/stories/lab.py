"""A receiver, workers, a sweep and senders on real servers, any of which may be cut at a failpoint."""

import itertools
import json
import os
import select
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import redis

from hookonce.receiver.ledger.runs import takeover
from hookonce.receiver.redis.pending import QUEUE
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.stories import reading
from tests.support.stories.history import History, Violation, check
from tests.support.stories.outside import OTHER_PLANS, World
from tests.support.stories.plans import CONFIGURATION, PLANS, SECRET
from tests.support.stories.sending import post
from tests.support.waiting import DeadlineMissed, until

ENOUGH = 30.0
LOG_LEVEL = os.environ.get("STORY_LOG_LEVEL", "CRITICAL")
ROUNDS = 8
TRIES = 4
MADE = """
CREATE TABLE IF NOT EXISTS effects (source text, event_id text, handler text, attempt int, digest text)
"""
TIME_PASSES = (
    "UPDATE hookonce.queue SET due_at = due_at - %(span)s::interval",
    "UPDATE hookonce.claims SET lease_until = lease_until - %(span)s::interval",
)
TABLES = (
    "hookonce.events",
    "hookonce.bodies",
    "hookonce.queue",
    "hookonce.runs",
    "hookonce.claims",
    "effects",
)
RENEWED = "SELECT bool_and(lease_until > now() + interval '25 seconds') FROM hookonce.claims"
SUSPECTS = """
SELECT e.source, e.event_id, q.handler FROM hookonce.queue q JOIN hookonce.events e ON e.id = q.event
WHERE q.waits = 'suspect'
"""
RESTLESS = (
    "SELECT count(*) FROM hookonce.event_states WHERE status NOT IN ('done', 'dead', 'ignored', 'held')"
)

_paths = itertools.count(1)


class Fuse:
    """Cuts whichever process reaches the k-th failpoint, or the k-th of one name, counted over all processes."""

    def __init__(self, k, log, only=None):
        self._k = k
        self._only = only
        self._log = log
        self._log.unlink(missing_ok=True)

    @property
    def met(self):
        return self._log.read_text().split() if self._log.exists() else []

    @property
    def _left(self):
        """How many more are to be reached."""
        return self._k - sum(self._only in {None, each} for each in self.met)

    @property
    def is_blown(self):
        return self._left <= 0

    def wishes(self):
        """What a new process is told, if it may be the one."""
        left = self._left
        return {"fatal": left, "only": self._only, "log": str(self._log)} if left > 0 else {}


class Process:
    """A child of the nursery."""

    def __init__(self, nursery, pid, path=None):
        self.pid = pid
        self.path = path
        self._nursery = nursery
        self._handle = os.pidfd_open(pid)
        self.status = None

    @property
    def has_ended(self):
        if self.status is None and select.select([self._handle], [], [], 0)[0]:
            self._reap()
        return self.status is not None

    def wait(self):
        """Wait for its end and give its status, negative for a signal."""
        if self.status is None:
            if not select.select([self._handle], [], [], ENOUGH)[0]:
                raise DeadlineMissed(f"process {self.pid} still runs after {ENOUGH} s")
            self._reap()
        return self.status

    def kill(self, number=signal.SIGKILL):
        if not self.has_ended:
            os.kill(self.pid, number)
        return self

    def _reap(self):
        self.status = self._nursery.reap(self.pid)
        os.close(self._handle)


class Lab:
    """One story: the processes, the history so far, and the ledger."""

    role, handlers, plans = "work", "tests.support.stories.handlers", PLANS

    def __init__(self, nurseries, database_url, redis_url, directory, mistake=""):
        self.nurseries = nurseries
        self.directory = Path(directory)
        self.history = History()
        self.fuse = None
        self.mistake = mistake
        self._receiver = None
        self._turn = threading.Lock()
        self._children = []
        (self.directory / "hookonce.toml").write_text(CONFIGURATION.replace(Lab.handlers, self.handlers))
        self.environ = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_CONFIG": str(self.directory / "hookonce.toml"),
            "HOOKONCE_PLANTED_MISTAKE": mistake,
            "STORY_SECRET": SECRET,
            "STORY_LOG_LEVEL": LOG_LEVEL,
            "HOOKONCE_LOG_LEVEL": LOG_LEVEL,
            "STORY_DIRECTORY": str(self.directory),
        }
        self.sql = None
        self.connect()

    def connect(self):
        """Connect to the ledger, or to the one that has taken its place."""
        if self.sql is not None:
            self.sql.close()
        self.sql = psycopg.connect(self.environ["DATABASE_URL"], autocommit=True)
        self.sql.execute(MADE)

    def close(self):
        for child in self._children:
            child.kill().wait()
        self.sql.close()

    # processes

    def receiver(self):
        """The receiver that runs, started (again) if none does."""
        with self._turn:  # copies that are sent at once may all find it dead
            if self._receiver is not None and self._receiver.has_ended:
                assert self._receiver.status == -signal.SIGKILL, (
                    f"a receiver ended with {self._receiver.status}"
                )
                self._receiver = None
            if self._receiver is None:
                self._receiver = self.start_receiver()
            return self._receiver

    def start_receiver(self, **wishes):
        path = str(self.directory / f"r{next(_paths)}.sock")
        return self._start("receivers", "receive", path=path, at=path, **wishes)

    def start_worker(self, role=None, **wishes):
        return self._start("workers", role or self.role, **wishes)

    def use_receiver(self, **wishes):
        """Have the senders talk to a receiver of this kind from now on."""
        self.stop_receiver()
        self._receiver = self.start_receiver(**wishes)

    def stop_receiver(self):
        if self._receiver is not None:
            self._receiver.kill().wait()

    def work(self, **wishes):
        """Let one worker answer all rings; tell how it ended."""
        return self.ended(self.start_worker(**wishes))

    def sweep(self):
        return self.ended(self._start("workers", "sweep"))

    def ring(self):
        """Ring the bell, whoever listens."""
        with redis.Redis.from_url(self.environ["REDIS_URL"]) as client:
            WorkQueue(client).notify()

    def rings(self):
        """How many rings wait for a worker."""
        with redis.Redis.from_url(self.environ["REDIS_URL"]) as client:
            return WorkQueue(client).pending()

    def drop_rings(self):
        """Lose every ring that waits, and those that the receiver, which rings after its answers, has yet to send."""
        self.stop_receiver()
        with redis.Redis.from_url(self.environ["REDIS_URL"]) as client:
            client.delete(f"rq:queue:{QUEUE}")

    def ended(self, worker):
        """Wait for a worker; one that was killed is a fault that may cost an attempt."""
        status = worker.wait()
        assert status in {0, -signal.SIGKILL}, f"a worker ended with {status}"
        self.history.faults += status != 0
        return status

    def _start(self, nursery, role, path=None, environ=None, **wishes):
        wishes = (self.fuse.wishes() if self.fuse else {}) | wishes
        environ = self.environ | (environ or {})
        child = Process(self.nurseries[nursery], self.nurseries[nursery].start(role, environ, **wishes), path)
        self._children.append(child)
        return child

    # senders

    def deliver(self, message, receiver=None):
        """Send once and write down the answer."""
        delivery = post(message, (receiver or self.receiver()).path)
        self.history.deliveries.append(delivery)
        return delivery

    def insist(self, message, receiver=None):
        """Send until there is a 2xx, as a sender does; the receiver is started again if it has died."""
        for _ in range(TRIES):
            target = receiver or self.receiver()
            delivery = self.deliver(message, target)
            if delivery.status == 200:
                break
            if delivery.status is None:
                _let_it_die(target)
            message = message.again()
        return delivery

    def insist_at_once(self, message, copies, receivers=()):
        """Send copies at the same moment; each is retried until it gets its 2xx."""
        self.receiver()
        with ThreadPoolExecutor(copies) as pool:
            first = list(
                pool.map(
                    lambda n: self.deliver(message, receivers[n % len(receivers)] if receivers else None),
                    range(copies),
                )
            )
        return [each if each.status == 200 else self.insist(message.again()) for each in first]

    # time and verdict

    def pass_time(self, span="1 day"):
        """Let time pass in the ledger; after a day every lease has run out, every retry is due."""
        for statement in TIME_PASSES:
            self.sql.execute(statement, {"span": span})

    def expire_leases(self):
        """Let a day pass while workers are at work: to them it is a fault."""
        self.pass_time()
        self.history.faults += 1

    def recover(self, *, sweeps=True):
        """Sweep and work until everything has ended, or it is no use."""
        for _ in range(ROUNDS):
            if not self.sql.execute(RESTLESS).fetchone()[0]:
                break
            self.pass_time()
            if sweeps:
                self.sweep()
            self.work()

    def until(self, look, expected=None, what=None):
        """Wait until something is seen, or a process of ours has died of its fuse."""

        def met():
            if self.fuse and self.fuse.is_blown:
                return expected or True
            return look()

        until(met, expected, what=what)

    def entries(self):
        """How often handlers were entered so far."""
        return len(reading.entries(self.directory))

    def let_go(self, event_id, entry):
        """Let the handler go on that waits there, having been entered for this event so many times."""
        (self.directory / f"go-{event_id}-{entry}").touch()

    def wait_for_renewal(self):
        """Give whoever has a lease the time to renew it; that nobody does is for the checker to say."""
        with suppress(DeadlineMissed):
            until(lambda: self.sql.execute(RENEWED).fetchone()[0], seconds=5, what="a renewal")

    def take_over(self):
        """Take over what dead workers had claimed, and write down which runs are to be run alone now."""
        takeover.take_over(self.sql)
        entered = Counter(entry[:3] for entry in reading.entries(self.directory))
        self.history.suspects += [(*run, entered[run]) for run in self.sql.execute(SUSPECTS).fetchall()]

    def runs(self, like, but=""):
        """The runs of events whose id is like this: handler, status, attempts."""
        query = """SELECT handler, r.status, attempts FROM hookonce.run_states r JOIN hookonce.events e ON e.id = event
                   WHERE event_id LIKE %s AND event_id <> %s ORDER BY e.id, handler"""
        return self.sql.execute(query, [like, but]).fetchall()

    def history_now(self):
        """What happened so far, with what handlers wrote down."""
        self.history.entries = reading.entries(self.directory)
        self.history.effects = reading.effects(self.sql)
        return self.history

    def violations(self, *, at_rest=True, dropped_bodies=False):
        """What the history checker says to all that happened so far."""
        return check(
            self.history_now(),
            reading.ledger(self.sql, dropped_bodies=dropped_bodies),
            self.plans,
            at_rest=at_rest,
        )

    def forget(self):
        """Begin a new history: the ledger, our logical database and everything written down are emptied."""
        self.stop_receiver()
        with redis.Redis.from_url(self.environ["REDIS_URL"]) as client:
            client.flushdb()
        self.history = History()
        for written in ("entries", *(path.name for path in self.directory.glob("go-*"))):
            (self.directory / written).unlink(missing_ok=True)
        for table in TABLES:  # cheaper than TRUNCATE for a handful of rows
            self.sql.execute(f"DELETE FROM {table}")  # noqa: S608  the names above


class ManyLab(Lab):
    """A lab with handlers of all kinds, some of whose workers run many at once."""

    handlers, plans = "tests.support.stories.all_handlers", (*PLANS, *OTHER_PLANS)

    def work_many(self):
        """Let one worker that runs several at once answer all rings; tell how it ended."""
        return self.ended(self.start_worker("work_many"))

    def violations(self, **options):
        """What the history checker says, and what the world outside should not have seen."""
        found = World(self.directory).mistakes(self.history.faults)
        return super().violations(**options) + [Violation("outside", what) for what in found]

    def forget(self):
        super().forget()
        World(self.directory).forget()


class DjangoLab(Lab):
    """A lab whose workers are Django's; for the nursery `django` in the place of the workers'."""

    role, handlers = "work_in_django", "tests.support.stories.django_handlers"


@contextmanager
def opened(lab):
    try:
        yield lab
    finally:
        lab.close()


def _let_it_die(receiver):
    """Give a receiver that hung up the time to be seen dead; one that only hung up goes on."""
    with suppress(DeadlineMissed):
        until(lambda: receiver.has_ended, seconds=0.5)


def keys_of(directory):
    """The idempotency keys that handlers were given, by (source, event id, handler)."""
    keys = {}
    for line in (Path(directory) / "entries").read_text().splitlines():
        entry, key = json.loads(line)
        keys.setdefault(tuple(entry[:3]), set()).add(key)
    return keys
