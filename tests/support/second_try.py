"""A test that missed a deadline of waiting is tried once more, no other is; more than three such tests fail the run.

pytest-rerunfailures can do as much, at two round trips to a server of its own: 40 ms a test, a third of this suite.
An assertion beside a missed deadline (in a `finally`, in a teardown) stays a failure.
"""

from functools import partial

import pytest
from _pytest.runner import runtestprotocol

from tests.support.waiting import DeadlineMissed

MOST = 3  # in a run
AGAIN = "rerun"
ERRORS = pytest.StashKey[list]()


class SecondTry:
    """A plugin of pytest; with pytest-xdist of each worker, and of the controller, which counts."""

    def __init__(self):
        self._missed = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = self._try(item, nextitem)
        if item.stash[ERRORS] and all(map(is_missed_deadline, item.stash[ERRORS])):
            setups = item.session._setupstate  # noqa: SLF001  pytest-rerunfailures uses it as well
            for report in reports:
                report.outcome = AGAIN if report.failed else report.outcome
                if report.outcome == AGAIN:
                    item.ihook.pytest_runtest_logreport(report=report)
            try:
                setups.teardown_exact(None)  # a fixture of the module may have missed it
            except Exception as error:  # noqa: BLE001  an assertion of a fixture's end, which is no missed deadline
                reports = [failed_at_the_end(item, error)]
            else:
                reports = self._try(item, nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _try(self, item, nextitem):
        item.stash[ERRORS] = []
        return runtestprotocol(item, nextitem=nextitem, log=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.failed:
            item.stash[ERRORS].append(call.excinfo and call.excinfo.value)
        return report

    def pytest_runtest_logreport(self, report):
        if report.outcome == AGAIN:
            why = getattr(report.longrepr, "reprcrash", None)
            self._missed.append(
                f"RERUN {report.nodeid} ({report.when}) - {why.message if why else report.longrepr}"
            )

    def pytest_report_teststatus(self, report):
        return (AGAIN, "R", ("RERUN", {"yellow": True})) if report.outcome == AGAIN else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if len(self._missed) > MOST and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        for line in self._missed:
            terminalreporter.write_line(line, yellow=True)
        if len(self._missed) > MOST:
            terminalreporter.write_line(
                f"{len(self._missed)} reruns, {MOST} at most: the run is red", red=True
            )


def failed_at_the_end(item, error):
    """Return the report of a test whose fixtures failed when they were ended before its second try."""
    call = pytest.CallInfo.from_call(partial(raised, error), when="teardown")
    return pytest.TestReport.from_item_and_call(item, call)


def raised(error):
    raise error


def is_missed_deadline(error):
    """Tell whether a missed deadline, and nothing else, is what a test failed of."""
    return error is not None and all(isinstance(each, DeadlineMissed) for each in chain(error))


def chain(error):
    """Yield an error and those that it hides."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
