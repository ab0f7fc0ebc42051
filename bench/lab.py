"""What scenarios work with: the servers, the time that is left, loads to send and figures to note."""

import json
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.load import Plan
from bench.stack import ROOT, Site, Stack
from receiver import spawn

MOST_PER_SECOND = 12_000  # deliveries made for a closed load: more than two cores can take
CONNECTIONS = 32
_PATIENCE = 120.0  # seconds


class BadAnswers(Exception):  # noqa: N818  a verdict about the run
    """The server answered something other than 2xx, or not at all; its figures mean nothing."""


@dataclass
class Lab:
    """One run of the benchmark. `quick` is for a look, not for a claim.

    No scenario starts another round after `rounds_until`, so that a slow one leaves time to the others.
    """

    stack: Stack
    quick: bool
    until: float
    rounds_until: float = float("inf")
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def pick(self, full: float, quick: float) -> float:
        """Choose between the two kinds of run."""
        return quick if self.quick else full

    def rounds(self, full: int, quick: int, seconds: float) -> Iterator[int]:
        """Count rounds while there is time for another of so many seconds; at least one."""
        for number in range(quick if self.quick else full):
            if number and time.monotonic() + seconds > min(self.until, self.rounds_until):
                print(f"  out of time after {number} rounds", flush=True)
                return
            yield number

    def note(self, **values: float) -> None:
        """Add a value to each of these figures; a figure is the median of its values."""
        for name, value in values.items():
            self.figures[name].append(value)

    def figure(self, name: str) -> float | None:
        """Give a figure so far; None if it was not measured."""
        return median(self.figures[name]) if name in self.figures else None


@dataclass
class Prepared:
    """A load whose requests are made; `start` sends them."""

    process: subprocess.Popen[str]

    def start(self) -> None:
        """Send."""
        self._tell("\n")

    def result(self) -> dict[str, Any]:
        """Wait for the end and give what `bench.load` says. Raises `BadAnswers` unless all were 2xx."""
        try:
            output, _ = self.process.communicate(timeout=_PATIENCE)
        finally:
            self.process.kill()
        if self.process.returncode:
            raise BadAnswers(f"the load generator failed with {self.process.returncode}")
        answer = json.loads(output)
        bad = {status: n for status, n in answer["statuses"].items() if not status.startswith("2")}
        if bad:
            raise BadAnswers(f"not all answers were 2xx: {bad} of {answer['answered']}")
        return dict(answer)

    def _tell(self, text: str) -> None:
        if self.process.stdin is None:
            raise ValueError("the load generator has no stdin")
        self.process.stdin.write(text)
        self.process.stdin.flush()


def prepare(plan: Plan) -> Prepared:
    """Have a load generator make its requests."""
    given = {name: value for name, value in asdict(plan).items() if name != "made"}
    process = subprocess.Popen(  # noqa: S603  our own program
        spawn.command([sys.executable, "-m", "bench.load", json.dumps(given)], on_death=signal.SIGKILL),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdout is None or process.stdout.readline() != "ready\n":
        process.kill()
        raise BadAnswers("the load generator did not start")
    return Prepared(process)


def send(plan: Plan) -> dict[str, Any]:
    """Make the requests of a plan, send them, and give the result."""
    prepared = prepare(plan)
    prepared.start()
    return prepared.result()


def closed(port: int, seconds: float, **options: Any) -> Plan:  # noqa: ANN401  a plan's own
    """Plan a closed load of new deliveries, its first fifth to warm up."""
    count = 1 if options.get("bare") else int(MOST_PER_SECOND * seconds)
    plan = {"count": count, "seconds": seconds, "warm": seconds / 5, "connections": CONNECTIONS}
    return Plan(port=port, **(plan | options))


def await_effects(site: Site, count: int, seconds: float = 90) -> None:
    """Wait until handlers have run for so many events. Raises `BadAnswers` when they do not get there."""
    deadline = time.monotonic() + seconds
    with site.connect() as connection:
        while True:
            row = connection.execute("SELECT count(*) FROM effects").fetchone()
            if row and row[0] >= count:
                return
            if time.monotonic() > deadline:
                raise BadAnswers(f"{row[0] if row else 0} of {count} events handled after {seconds:.0f} s")
            time.sleep(0.1)
