"""A skipped test is a hole: each reason is told once at the end; in CI one that is not on this list fails the run."""

import os
from collections import Counter

import pytest

ALLOWED = {
    "this system lets root mount nothing": "a container without the right to; a full disk is not met there",
    "no package index has these versions": "oldest and newest packages are fetched by make test-all",
    "vendors' packages are not installed": "a gigabyte of npm, which `make vendors` installs",
    "no other user can reach this Python": "of root's own Python; the test starts servers as another user",
}
"""Beginnings of reasons that stand even in CI, and why."""


class Skips:
    """A plugin of pytest that counts the reasons of skips."""

    def __init__(self):
        self._reasons = Counter()

    def pytest_runtest_logreport(self, report):
        self._note(report)

    def pytest_collectreport(self, report):
        self._note(report)

    def _note(self, report):
        if report.skipped and isinstance(report.longrepr, tuple):
            self._reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    @property
    def holes(self):
        """The reasons for which CI may not leave out a test."""
        return [reason for reason in self._reasons if not reason.startswith(tuple(ALLOWED))]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if os.environ.get("CI") and self.holes and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        for reason, count in sorted(self._reasons.items()):
            is_red = os.environ.get("CI") and reason in self.holes
            terminalreporter.write_line(
                f"SKIPPED {count}: {reason}"
                + (" (tests/support/skips.py does not allow it in CI)" if is_red else ""),
                red=bool(is_red),
                yellow=not is_red,
            )
