"""Loads as scenarios send them: a plan, a generator in a process of its own, and its result if all answers were 2xx."""

import json
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.load.generator import Plan
from hookonce.receiver.processes import spawn

ROOT = Path(__file__).parents[2]
MAX_RATE = 12_000  # deliveries made for a closed load: more than two cores can take
CONNECTIONS = 32
_LOAD_TIMEOUT = 120.0  # seconds


class BadAnswers(Exception):  # noqa: N818  a verdict about the run
    """The server answered something other than 2xx, or not at all; its figures mean nothing."""


@dataclass
class Prepared:
    """A load whose requests are made; `start` sends them."""

    process: subprocess.Popen[str]

    def start(self) -> None:
        """Send."""
        self._tell("\n")

    def result(self) -> dict[str, Any]:
        """Wait for the end and give what `bench.load.generator` says. Raises `BadAnswers` unless all were 2xx."""
        answer = self.answer()
        bad = {status: n for status, n in answer["statuses"].items() if not status.startswith("2")}
        if bad:
            raise BadAnswers(f"not all answers were 2xx: {bad} of {answer['answered']}")
        return answer

    def answer(self) -> dict[str, Any]:
        """Wait for the end and give what `bench.load.generator` says. Raises `BadAnswers` where it failed."""
        try:
            output, _ = self.process.communicate(timeout=_LOAD_TIMEOUT)
        finally:
            self.process.kill()
        if self.process.returncode:
            raise BadAnswers(f"the load generator failed with {self.process.returncode}")
        return dict(json.loads(output))

    def _tell(self, text: str) -> None:
        if self.process.stdin is None:
            raise ValueError("the load generator has no stdin")
        self.process.stdin.write(text)
        self.process.stdin.flush()


def prepare(plan: Plan) -> Prepared:
    """Have a load generator make its requests."""
    given = {name: value for name, value in asdict(plan).items() if name != "made"}
    process = subprocess.Popen(  # noqa: S603  our own program
        spawn.command(
            [sys.executable, "-m", "bench.load.generator", json.dumps(given)], on_death=signal.SIGKILL
        ),
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
    count = 1 if options.get("bare") else int(MAX_RATE * seconds)
    plan = {"count": count, "seconds": seconds, "warm": seconds / 5, "connections": CONNECTIONS}
    return Plan(port=port, **(plan | options))
