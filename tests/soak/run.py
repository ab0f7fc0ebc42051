"""The soak: a whole stack, storms of copies, kills; then rest, and the history checker's word."""

import contextlib
import itertools
import random
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.ledger.database import migrate
from tests.soak import clients, housekeeping
from tests.soak.clients import Clients
from tests.soak.crasher import Crasher
from tests.soak.housekeeping import Housekeeper
from tests.soak.killer import Killer
from tests.soak.storm import Storm
from tests.support.event_sums import differences
from tests.support.pooler import Pooler
from tests.support.stories.outside import OTHER_PLANS, World
from tests.support.stories.plans import PLANS
from tests.support.stories.sending import depot, github, stripe
from tests.support.stories.stack import Stack, command_of, running, until
from tests.support.waiting import DeadlineMissed

KINDS = ("invoice.sent", "invoice.sent", "invoice.sent", "invoice.paid")
SLOW_SHARE, SLOW = 0.04, (0.05, 0.15)
"""How many handlers take how many seconds, so that there is always somebody to be killed at work."""
OF_OTHERS = {"pallet.sent": 12, "truck.left": 5, "scale.read": 4, "order.placed": 5, "push": 5}
"""Of a hundred events those of the other handlers: a batch, long work, a limit, a step, an `async def`."""
CLIENTS = 2
HOLD = (0.02, 0.3)
"""Seconds that these have their work in hand."""
LATER_COPIES = (1, 1, 1, 1, 2)
AT_HAND, AT_HAND_EVERY = 0.3, 0.2
"""Somebody is at work even while a storm brings nothing new: for so many seconds, every so many, for each process."""
POOL_SIZE = 40
HANDLERS = "tests.soak.handlers"
DJANGO = "worker in django"
"""The process that supervises the worker of Django, where there is one."""
LOOKED_AFTER = 60
"""Seconds in which workers come to look again at a ledger in which nothing is due."""


@dataclass(frozen=True)
class Size:
    """For how long; a storm's events, and the copies of each in the first; how many processes, and old events.

    `django`: one of the workers is Django's, and nothing that it refuses is sent: long work without a transaction.
    `pooled`: PgBouncer is between all and PostgreSQL, in transaction mode. `crashes`: both crash, too.
    `one_in`: seconds in which at least one kill must hit a process that holds work.

    In 60 s two busy cores take some 10,000 events.
    """

    seconds: float = 60
    storm: int = 200
    copies: int = 50
    web: int = 2
    workers: int = 4
    concurrency: int = 1
    senders: int = 4
    old: int = 400
    one_in: float = 3
    django: bool = False
    pooled: bool = False
    crashes: bool = False


@dataclass
class Outcome:
    """What came of it."""

    seed: int
    one_in: float
    seconds: float = 0
    events: int = 0
    deliveries: int = 0
    worker_kills: int = 0
    receiver_kills: int = 0
    crashes: dict = field(default_factory=dict)
    holding: int = 0
    longest_pause: float = 0
    lost: int = 0
    doubled: int = 0
    dead: int = 0
    done: dict = field(default_factory=dict)
    world: str = ""
    rotated: int = 0
    pruned: int = 0
    commands: int = 0
    commands_killed: int = 0
    housekeeping: list = field(default_factory=list)
    outside: list = field(default_factory=list)
    ledger: list = field(default_factory=list)
    violations: list = field(default_factory=list)

    @property
    def mistakes(self):
        """Why it failed; nothing if it did not."""
        found = [f"{each.check}: {each.what}" for each in self.violations] + self.housekeeping
        found += self.outside + self.ledger
        if self.lost or self.doubled or self.dead:
            found.append(f"{self.lost} lost, {self.doubled} doubled, {self.dead} innocent runs dead")
        if self.holding < self.seconds / self.one_in - 1:
            found.append(f"only {self.holding} kills hit a process that held work, in {self.seconds:.0f} s")
        return found

    def lines(self):
        """The figures, as they are printed."""
        yield f"seed           {self.seed}"
        yield f"seconds        {self.seconds:.0f}"
        yield f"events         {self.events}"
        yield f"deliveries     {self.deliveries}"
        yield f"redeliveries   {self.deliveries - self.events}"
        kills = self.worker_kills + self.receiver_kills
        pace = f"one in {self.seconds / max(kills, 1):.1f} s"
        yield f"kills          {kills}, {pace} ({self.worker_kills} workers, {self.receiver_kills} receivers)"
        crashes = ", ".join(f"{count} {way}" for way, count in sorted(self.crashes.items()))
        yield f"crashes        {crashes or 'none'}"
        yield f"held work      {self.holding} of them, {self.longest_pause:.1f} s apart at most"
        done = (
            f"{self.rotated} rotations of keys, {self.pruned} prunings, {self.commands_killed} killed at it"
        )
        yield f"housekeeping   {done}"
        yield f"done           {', '.join(f'{handler} {count}' for handler, count in sorted(self.done.items()))}"
        yield f"commands       {self.commands}"
        yield f"world          {self.world}"
        yield f"lost           {self.lost}"
        yield f"doubled        {self.doubled}"
        yield f"dead           {self.dead}"


class Sealed(Stack):
    """A stack that seals and redacts what it keeps, and takes commands."""

    plans = (*PLANS, *OTHER_PLANS)
    keyring = housekeeping.KEYRING

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        (self.directory / "hookonce.toml").write_text(housekeeping.configuration())
        self.environ |= housekeeping.environ()

    def start_django(self):
        """Start a worker of Django besides."""
        self.run(
            DJANGO,
            "hookonce_worker",
            program="django",
            DJANGO_SETTINGS_MODULE="tests.soak.django_settings",
            HOOKONCE_HANDLERS="tests.soak.django_handlers",
        )

    @property
    def workers(self):
        """The process ids of the workers, that of Django among them."""
        in_django = self.kin(DJANGO) if DJANGO in self.processes else ()
        return super().workers + [pid for pid in in_django if "hookonce_worker" in command_of(pid)]


def soak(size, seed, disk):
    """Run one soak on servers of its own; give its outcome."""
    directory = Path(tempfile.mkdtemp(prefix="hookonce-soak-", dir=disk))
    directory.chmod(0o711)
    with contextlib.ExitStack() as cleaning:
        cleaning.callback(shutil.rmtree, directory, ignore_errors=True)
        postgres = Postgres.start(directory, durable=False)
        cleaning.callback(postgres.stop)
        valkey = Valkey.start(directory)
        cleaning.callback(valkey.stop)
        migrate.upgrade(postgres.url)
        pooler = (
            Pooler(postgres.url, directory, size=POOL_SIZE, settings="SET timezone = UTC")
            if size.pooled
            else None
        )
        if pooler is not None:
            cleaning.callback(pooler.kill)
        place = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        stack = Sealed(
            place,
            postgres.url,
            valkey.url,
            web=size.web,
            workers=size.workers - size.django,
            handlers=HANDLERS,
        ).make_effects()
        stack.query(clients.MADE)
        stack.environ["HOOKONCE_CONCURRENCY"] = str(size.concurrency)
        if pooler is not None:
            stack.environ["DATABASE_URL"] = pooler.url
        crasher = Crasher(postgres, pooler, random.Random(seed + 3))  # noqa: S311  to be repeated
        if size.crashes:
            crasher.start()
            cleaning.callback(crasher.close)
        housekeeping.grow_old(stack, size.old)
        cleaning.enter_context(running(stack))
        stack.run("second sweep", "sweep")
        if size.django:
            stack.start_django()
        stack.insist(stack.event())
        return _rage(stack, size, seed, crasher)


def _rage(stack, size, seed, crasher):
    chance = random.Random(seed)  # noqa: S311  to be repeated, not to be kept secret
    outcome = Outcome(seed, size.one_in)
    killer, storm = Killer(stack, random.Random(seed + 1)), Storm(stack.path, size.senders)  # noqa: S311  same
    housekeeper = Housekeeper(stack, random.Random(seed + 2), size.old, may_fail=size.crashes)  # noqa: S311  same
    asking = Clients(stack.path, CLIENTS)
    killer.start()
    housekeeper.start()
    asking.start()
    try:
        with stack.load(
            senders=1 if size.concurrency == 1 else size.workers, breath=AT_HAND_EVERY, slow=AT_HAND
        ):
            _blow(stack, storm, size, chance)
    finally:
        if size.crashes:
            crasher.stop()
        killer.stop()
        housekeeper.stop()
        asking.stop()
        storm.close()
    outcome.crashes = crasher.done
    if crasher.failure is not None:
        raise crasher.failure
    stack.history.faults = killer.workers + killer.receivers + crasher.done.total()
    stack.history.deliveries = [housekeeping.as_stored(each) for each in stack.history.deliveries]
    stack.rest()
    housekeeper.finish()
    outcome.ledger = list(_look_at_the_ledger(stack))
    outcome.commands = len(asking.answers)
    outcome.ledger += asking.mistakes([number for (number,) in stack.query("SELECT number FROM ordered")])
    housekeeper.forget()
    outcome.violations = stack.violations()
    outcome.seconds, outcome.longest_pause = killer.seconds, killer.longest_pause
    outcome.holding = len(killer.holding)
    outcome.worker_kills, outcome.receiver_kills = killer.workers, killer.receivers
    outcome.deliveries = len(stack.history.deliveries)
    outcome.rotated, outcome.pruned = housekeeper.ended["rotate"], housekeeper.ended["prune"]
    outcome.commands_killed, outcome.housekeeping = housekeeper.killed, housekeeper.mistakes
    _count(stack, outcome, crasher.done.total())
    return outcome


def _blow(stack, storm, size, chance):
    """Send storm after storm until the time is over: the first of many copies, the others of a few here and there."""
    end = time.monotonic() + size.seconds
    kinds = {kind: share for kind, share in OF_OTHERS.items() if not (size.django and kind == "truck.left")}
    for number in itertools.count():
        messages = [_message(number * size.storm + n, chance, kinds) for n in range(size.storm)]
        copies = [chance.choice(LATER_COPIES) if number else size.copies for _ in messages]
        stack.history.deliveries += storm.send(
            [message for message, count in zip(messages, copies, strict=True) for _ in range(count)]
        )
        if time.monotonic() > end:
            return


def _message(number, chance, kinds):
    kind = chance.choices([*kinds, None], [*kinds.values(), 100 - sum(kinds.values())])[0]
    slow = {"slow": chance.uniform(*SLOW)} if chance.random() < SLOW_SHARE else {}
    if kind == "push":
        return github(f"push_{number}", number=number, story=slow)
    if kind:
        return depot(f"{kind}_{number}", kind=kind, hold=chance.uniform(*HOLD))
    return stripe(f"evt_soak_{number}", chance.choice(KINDS), card=housekeeping.CARD, **slow)


def _look_at_the_ledger(stack):
    """Say what must not be in a ledger at rest: lost events, claims, sums of something else."""
    with contextlib.suppress(DeadlineMissed):  # the last claim is forgotten with the next look
        until(lambda: not _claims(stack), seconds=LOOKED_AFTER, what="the end of all claims")
    if count := _claims(stack):
        yield f"{count} rows are left in claims"
    if count := stack.query("SELECT count(*) FROM hookonce.event_states WHERE status = 'lost'")[0][0]:
        yield f"{count} events are neither to be done nor ended"
    with psycopg.connect(stack.database_url, autocommit=True) as sql:
        for (source, status), (kept, counted) in differences(sql).items():
            yield f"the sum of {status} of {source} is {kept}, a full count gives {counted}"


def _claims(stack):
    return stack.query("SELECT count(*) FROM hookonce.claims")[0][0]


def _count(stack, outcome, crashes):
    """Count events that were promised and are not done, and effects beyond the first, without the checker's help."""
    genuine = [delivery for delivery in stack.history.deliveries if delivery.is_authentic]
    sent = {each.event_id for delivery in genuine for each in delivery.events}
    done = {row[0] for row in stack.query("SELECT event_id FROM hookonce.event_states WHERE status = 'done'")}
    effects = stack.query("SELECT event_id, handler, count(*) FROM effects GROUP BY 1, 2")
    outcome.events = len(sent)
    outcome.lost = len(sent - done) + len(sent - {row[0] for row in effects})
    outcome.dead = stack.query("SELECT count(*) FROM hookonce.run_states WHERE status = 'dead'")[0][0]
    rows = stack.query("SELECT handler, count(*) FROM hookonce.run_states WHERE status = 'done' GROUP BY 1")
    outcome.done = dict(rows)
    world = World(stack.directory)
    outcome.world = world.counts()
    outcome.outside = list(world.mistakes(outcome.worker_kills + crashes))
    outcome.doubled = sum(count - 1 for _, _, count in effects)
