"""The whole product as users run it: `hookonce serve` and `hookonce worker`, and senders who do not give up."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg

from hookonce.receiver.dev.embedded.process import children
from hookonce.receiver.encryption import OFF
from tests.support import waiting
from tests.support.stories import reading
from tests.support.stories.history import History, check
from tests.support.stories.lab import MADE, RESTLESS
from tests.support.stories.plans import CONFIGURATION, PLANS, SECRET
from tests.support.stories.sending import PATIENCE, post, stripe
from tests.support.waiting import DeadlineMissed
from tests.support.warm_python import WarmPython

ROOT = Path(__file__).parents[3]
HANDLERS = "tests.support.stories.hurried"
ENOUGH = 90.0
"""Seconds in which anything must have happened, on a busy machine."""
OUTAGE = float(os.environ.get("STORY_OUTAGE_SECONDS") or 0)
"""Seconds that a server is away even if a story has seen all it waits for; `make soak` takes 3 to 35."""
BREATH = 0.05
"""Seconds between two events of a sender: the workers shall keep up."""
AGAIN = 0.05
"""Seconds until a sender comes again."""


WARM = WarmPython("hookonce.receiver.cli", "hookonce.jobs.cli", "sqlalchemy.dialects.postgresql.psycopg")
"""What supervises workers, and workers that are alone, are forked; the supervisor starts its children itself."""


class Answered(NamedTuple):
    """When a delivery was sent (monotonic), what its sender waited (seconds), and what it was told."""

    at: float
    seconds: float
    status: int | None
    is_new: bool
    """Whether we said that we had not had its event before."""


class Stack:
    """A receiver of `web` processes and `workers` RQ workers with their sweep, on given servers."""

    program = "hookonce.receiver.cli"
    plans = PLANS
    """What its handlers are."""
    keyring = OFF
    """The keys that open what the ledger holds."""

    def __init__(self, directory, database_url, redis_url, *, web=2, workers=2, handlers=HANDLERS):
        self.directory = Path(directory)
        self.database_url = database_url
        self.history = History()
        self.answers = []
        self.given_up = set()
        """Ids of events whose senders did not wait for the answer."""
        self._names = itertools.count(1)
        self._web, self._workers = web, workers
        config = self.directory / "hookonce.toml"
        config.write_text(CONFIGURATION)
        foreign = ("HOOKONCE_", "GUNICORN_", "PG")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.environ = kept | {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_CONFIG": str(config),
            "HOOKONCE_HANDLERS": handlers,
            "HOOKONCE_DESK": "door",
            "STORY_SECRET": SECRET,
            "STORY_DIRECTORY": str(self.directory),
            "WEB_CONCURRENCY": str(web),
            "PYTHONPATH": str(ROOT),
        }
        self.path = str(self.directory / "serve.sock")
        self.processes = {}

    def start(self):
        """Start everything and wait for the receiver; a database that is not there is not waited for."""
        if self._web:
            self.run("serve", "serve", "--bind", f"unix:{self.path}")
        if self._workers:
            self.run("worker", "worker", "--processes", str(self._workers))
        if self._web:
            until(Path(self.path).exists, what="the receiver's start", process=self.processes["serve"])
        return self

    def run(self, name, *arguments, program=None, **environ):
        """Run a command of hookonce, or of another `program`, in the background, its output in `<name>.log`."""
        with (self.directory / f"{name}.log").open("ab") as log:
            start = self._started if arguments[0] == "serve" else WARM.start  # which gunicorn takes over
            command = ["-m", program or self.program, *arguments]
            self.processes[name] = start(command, cwd=self.directory, env=self.environ | environ, output=log)
        return self.processes[name]

    @staticmethod
    def _started(command, *, cwd, env, output):
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def close(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if process.poll() is None:
                process.kill()
                process.wait()

    @property
    def receivers(self):
        """The process ids of gunicorn's children."""
        return children(self.processes["serve"].pid)

    @property
    def workers(self):
        """The process ids of the RQ workers."""
        return [pid for pid in children(self.processes["worker"].pid) if name_of(pid) == "hookonce worker"]

    def kin(self, name):
        """The process ids of the children of what was run under this name."""
        return children(self.processes[name].pid)

    def kill(self, pid):
        """Kill a child of what we run."""
        assert pid in itertools.chain.from_iterable(map(self.kin, self.processes))
        os.kill(pid, signal.SIGKILL)

    def logged(self, name):
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def query(self, statement, values=None):
        """Ask the ledger over a connection of its own."""
        with psycopg.connect(self.database_url, autocommit=True) as sql:
            cursor = sql.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def make_effects(self):
        self.query(MADE)
        return self

    # senders

    def event(self, kind="invoice.sent", **story):
        """An event that nobody has sent yet."""
        return stripe(f"evt_{next(self._names)}", kind, **story)

    def deliver(self, message):
        """Send once, and write down the answer and how long it took."""
        began = time.monotonic()
        delivery = post(message, self.path)
        seconds = time.monotonic() - began
        self.answers.append(
            Answered(began, seconds, delivery.status, "accepted" in delivery.verdicts.values())
        )
        self.history.deliveries.append(delivery)
        if delivery.status is None and seconds >= PATIENCE:
            self.given_up.update(each.event_id for each in delivery.events)
        return delivery

    def insist(self, message, seconds=ENOUGH + OUTAGE):
        """Send until there is a 2xx, as a sender does."""
        deadline = time.monotonic() + seconds
        while (delivery := self.deliver(message)).status != 200:
            if time.monotonic() > deadline:
                raise DeadlineMissed(f"no 2xx within {seconds} s; the last answer was {delivery.status}")
            time.sleep(AGAIN)
            message = message.again()
        return delivery

    @contextmanager
    def load(self, senders=3, breath=BREATH, **story):
        """Senders that send one new event after the other, each twice, until it is taken; joined at the end.

        Each breathes so many seconds between two events.
        """
        enough = threading.Event()
        failures = []

        def send():
            try:
                while not enough.is_set():
                    message = self.event(**story)
                    self.insist(message)
                    self.insist(message.again())
                    enough.wait(breath)
            except (AssertionError, DeadlineMissed) as failure:
                failures.append(failure)

        threads = [threading.Thread(target=send) for _ in range(senders)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            enough.set()
            for thread in threads:
                thread.join()
        for failure in failures:
            raise failure

    def refused(self, moment):
        """How many were told since this moment to come again."""
        return sum(answer.status == 503 for answer in self.since(moment))

    def since(self, moment):
        """The answers to deliveries that were sent after this moment."""
        return [answer for answer in self.answers if answer.at >= moment]

    def figures(self, moment):
        """What senders met since then, in a line."""
        answers = self.since(moment)
        told = {status: sum(each.status == status for each in answers) for status in (200, 503, None)}
        new, slowest = (
            sum(each.is_new for each in answers),
            max((each.seconds for each in answers), default=0),
        )
        return (
            f"{len(answers)} deliveries, {new} new events, {told[503]} told to come again, "
            f"{told[None]} cut off, slowest answer {slowest:.2f} s"
        )

    # verdict

    def rest(self):
        """Wait until every event has ended, as long as it may take if there is progress."""
        while left := self.query(RESTLESS)[0][0]:
            until(
                lambda before=left: self.query(RESTLESS)[0][0] < before,
                what=f"the end of one of {left} events",
            )

    def violations(self):
        """Wait until all is at rest, and let the history checker judge."""
        self.rest()
        with psycopg.connect(self.database_url, autocommit=True) as sql:
            self.history.entries = reading.entries(self.directory)
            self.history.effects = reading.effects(sql)
            return check(self.history, reading.ledger(sql, keyring=self.keyring), self.plans)


@contextmanager
def running(stack):
    """Run a stack as long as the block lasts."""
    try:
        yield stack.start()
    finally:
        stack.close()


def until(look, expected=None, *, seconds=ENOUGH, **options):
    """Wait for what is expected; a server that is away has not shown it."""
    return waiting.until(look, expected, seconds=seconds, away=psycopg.OperationalError, **options)


def stay_away(began):
    """Wait until a server has been away for `OUTAGE`."""
    time.sleep(max(0, began + OUTAGE - time.monotonic()))


def name_of(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""


def command_of(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    return []


def p99(seconds):
    """The value that one in a hundred exceeds."""
    ranked = sorted(seconds)
    return ranked[max(0, int(len(ranked) * 0.99) - 1)]
