"""Where the time of the suite goes, by folder: `make test ARGS="-p tests.support.costs"` prints it as a table.

CPU of a process that a test starts counts where it is reaped, which for a module's server is the module's last test.
The servers that all tests share are reaped at the end, and stand in the last line only.
"""

import os
import resource
import subprocess
import sys
import time
from collections import Counter, defaultdict

import pytest

COLUMNS = ("tests", "wall", "own CPU", "children's CPU", "slept", "making databases", "processes started")
COST = "cost"
OF_DATABASES = {"servers", "template", "database_url", "redis_url", "empty_database"}


class Meter:
    """Counts, in a worker, what the test under way costs."""

    def __init__(self):
        self._spent = Counter()
        self._begun = {}
        time.sleep = self._timed(time.sleep, "slept")
        subprocess.Popen.__init__ = self._counted(subprocess.Popen.__init__, "processes started")

    def begin(self):
        self._spent.clear()
        self._begun = readings()

    def spend(self, name, amount):
        self._spent[name] += amount

    def spent(self):
        return (
            dict(self._spent)
            | {name: now - self._begun[name] for name, now in readings().items()}
            | {"tests": 1}
        )

    def _timed(self, function, name):
        def timed(*arguments):
            began = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.spend(name, time.perf_counter() - began)

        return timed

    def _counted(self, function, name):
        def counted(*arguments, **options):
            self.spend(name, 1)
            return function(*arguments, **options)

        return counted


def readings():
    times = os.times()
    return {
        "wall": time.perf_counter(),
        "own CPU": times.user + times.system,
        "children's CPU": times.children_user + times.children_system,
    }


METER = Meter()
BY_FOLDER = defaultdict(Counter)
BEGAN = time.perf_counter()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart():
    METER.begin()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    began = time.perf_counter()
    try:
        return (yield)
    finally:
        if fixturedef.argname in OF_DATABASES:
            METER.spend("making databases", time.perf_counter() - began)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call):
    report = yield
    if call.when == "teardown":
        report.user_properties.append((COST, METER.spent()))
    return report


def pytest_runtest_logreport(report):
    for name, value in report.user_properties:
        if name == COST:
            BY_FOLDER["/".join(report.nodeid.split("::")[0].split("/")[:2])].update(value)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if hasattr(config, "workerinput"):
        return
    rows = sorted(BY_FOLDER.items(), key=lambda row: -row[1]["own CPU"] - row[1]["children's CPU"])
    lines = [f"| folder | {' | '.join(COLUMNS)} |", f"|---{'|---:' * len(COLUMNS)}|"]
    for folder, cost in rows:
        lines.append(f"| {folder} | {' | '.join(f'{cost[name]:.0f}' for name in COLUMNS)} |")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines.append(f"all in {time.perf_counter() - BEGAN:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU")
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
