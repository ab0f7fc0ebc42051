"""pytest's part: says which test is under way while lines are probed, and runs chosen tests in their order."""

import json
import os
import sys
import time
from pathlib import Path

import mutants_probe
import pytest

FOLDER = Path(mutants_probe.FOLDER)


def pytest_addoption(parser):
    group = parser.getgroup("mutants")
    group.addoption("--mutants-probed", action="store_true", help="say which test is under way")
    group.addoption("--mutants-chosen", metavar="FILE", help="run these tests only, in this order")
    group.addoption("--mutants-failed", metavar="FILE", help="write down which test failed first")
    group.addoption("--mutants-seconds", type=float, default=0.0, help="begin no test after so long")


def pytest_configure(config):
    if config.getoption("--mutants-probed"):
        config.pluginmanager.register(Probed())
    if config.getoption("--mutants-chosen"):
        config.pluginmanager.register(Chosen(config))


class Probed:
    """Tells the probes which test is under way, and writes down how long each took, and how it ended."""

    def __init__(self):
        self._worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._number = 0
        self._seconds, self._outcome = 0.0, ""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_protocol(self, item):
        key = f"{self._worker}-{os.getpid()}-{self._number}"
        self._number += 1
        link, new = FOLDER / (mutants_probe.LINK + self._worker), FOLDER / f"new-{self._worker}"
        new.symlink_to(key)
        new.replace(link)
        try:
            return (yield)
        finally:
            said = {"key": key, "name": item.nodeid, "seconds": round(self._seconds, 3)}
            said |= {"outcome": self._outcome, "is_alone": is_alone(item)}
            with (FOLDER / f"tests-{self._worker}").open("a") as journal:
                journal.write(json.dumps(said) + "\n")

    def pytest_collectreport(self, report):
        if report.failed:
            with (FOLDER / "uncollected").open("a") as names:
                names.write(f"{report.nodeid}\n")

    def pytest_sessionfinish(self):
        (FOLDER / (mutants_probe.LINK + self._worker)).unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report):
        """Add up what a test's last try took; of a failure and a success, the failure counts."""
        if report.when == "setup":
            self._seconds, self._outcome = 0.0, ""
        self._seconds += report.duration
        if self._outcome in {"", "passed"}:
            self._outcome = report.outcome


def is_alone(item):
    """Tell whether a test looks at how long things take: by the lane of its file, or by a marker as in f876119."""
    if lanes := sys.modules.get("tests.support.lanes"):
        return lanes.lane_of(item.nodeid) == lanes.ALONE
    alone = item.get_closest_marker("alone")
    return alone is not None and alone.kwargs.get("really", True)


class Chosen:
    """Runs the tests of a list, and says which of them failed."""

    def __init__(self, config):
        names = Path(config.getoption("--mutants-chosen")).read_text().splitlines()
        self._order = {name: number for number, name in enumerate(names)}
        self._failed = Path(config.getoption("--mutants-failed"))
        self._until = time.monotonic() + config.getoption("--mutants-seconds")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        others = [item for item in items if item.nodeid not in self._order]
        config.hook.pytest_deselected(items=others)
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )

    def pytest_collectreport(self, report):
        if report.failed:
            self._note(report.nodeid, "collect", str(report.longrepr))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._note(report.nodeid, report.when, crash.message if crash else str(report.longrepr))

    def pytest_sessionstart(self, session):
        self._session = session

    def pytest_runtest_logfinish(self):
        if time.monotonic() > self._until:
            self._session.shouldstop = "no further test is begun"

    def _note(self, test, when, said):
        if not self._failed.exists():
            found = {"test": test, "when": when, "said": " ".join(said.split())[:200]}
            self._failed.write_text(json.dumps(found))
