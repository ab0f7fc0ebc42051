"""Two machines, each with a receiver and a worker, share nothing but PostgreSQL and Redis."""

import itertools
from pathlib import Path

import pytest

from tests.support.stories.stack import Stack, running, until


class Balanced(Stack):
    """A machine with another beside it, and senders whose deliveries go to both in turn."""

    def __init__(self, directory, database_url, redis_url):
        super().__init__(directory / "one", database_url, redis_url, web=1, workers=1)
        self.other = Stack(directory / "two", database_url, redis_url, web=1, workers=1)
        self.other.environ["STORY_DIRECTORY"] = self.environ["STORY_DIRECTORY"]
        self.turn = itertools.cycle([self.path, self.other.path])

    def start(self):
        """Start both machines, then wait for both receivers."""
        machines = (self, self.other)
        for machine in machines:
            machine.run("serve", "serve", "--bind", f"unix:{machine.path}")
            machine.run("worker", "worker", "--alone")
        for machine in machines:
            until(Path(machine.path).exists, what="the receiver's start")
        return self

    def close(self):
        self.other.close()
        super().close()

    def deliver(self, message):
        self.path = next(self.turn)
        return super().deliver(message)

    def lose_power(self):
        """Kill everything on the first machine at once, an attempt included; the balancer notices."""
        self.history.faults += 1
        self.turn = itertools.cycle([self.other.path])
        for process in self.processes.values():
            process.kill()


@pytest.fixture
def machines(tmp_path, database_url, redis_url):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    balanced = Balanced(tmp_path, database_url, redis_url)
    with running(balanced.make_effects()):
        yield balanced


def test_two_machines_need_no_coordination_and_one_goes_on_without_the_other(machines):
    machines.insist(machines.event())
    until(lambda: done(machines), what="the workers' start")
    with machines.load():
        until(lambda: done(machines) > 10, what="events handled by both")
        machines.lose_power()
        before = done(machines)
        until(lambda: done(machines) > before + 10, what="events handled by one")

    assert machines.violations() == []
    assert machines.query("SELECT id FROM hookonce.event_states WHERE deliveries > 1") != []


def done(machines):
    return machines.query("SELECT count(*) FROM hookonce.event_states WHERE status = 'done'")[0][0]
