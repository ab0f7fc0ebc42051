"""The crash loop for workers that run several at once, with handlers of every kind."""

import contextlib
import tempfile
from pathlib import Path

import pytest

from hookonce.receiver.failpoints import OF_LONG_RUNS, OF_OPERATIONS, POINTS
from tests.support.stories import scenarios
from tests.support.stories.lab import ManyLab, opened

DAYS = (scenarios.day_of_many_at_once, scenarios.day_of_batches_beside_many)
OF_WORKERS = {
    point
    for point in POINTS
    if point.partition(".")[0] in {"handler", "run", "failure", "batch", "job", "sweep"}
} - {"run.released"}
"""What is leased and not started is released by a worker that has no time left, one at a time or not."""
OF_STEPS = set(OF_OPERATIONS[:-1])


PLANTED = {
    "working.charges_all_that_were_under_way": "lease_taken",
    "working.commits_what_a_failed_attempt_wrote": "effect_lost",
}


@pytest.fixture
def lab_with(nurseries, database_url, redis_url):
    """Make a lab of many at once, with a mistake if one is named."""
    with tempfile.TemporaryDirectory(prefix="story-") as directory, contextlib.ExitStack() as stack:

        def make(mistake=""):
            lab = ManyLab(nurseries, database_url, redis_url, Path(directory), mistake)
            return stack.enter_context(opened(lab))

        yield make


@pytest.fixture
def many(lab_with):
    return lab_with()


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.__name__)
def test_nothing_is_lost_or_doubled_wherever_a_process_of_many_dies(many, day):
    for point, violations in scenarios.cut_everywhere(many, day):
        assert not violations, f"cut at {point}"


def test_days_of_many_go_through_every_failpoint_of_workers(many):
    met = {point for day in DAYS for point in scenarios.points_of(many, day)}

    assert met >= OF_WORKERS | OF_STEPS | set(OF_LONG_RUNS)


@pytest.mark.parametrize("mistake", PLANTED)
def test_planted_mistake_is_caught_where_many_run_at_once(lab_with, mistake):
    days = scenarios.cut_everywhere(lab_with(mistake), scenarios.day_of_many_at_once)

    assert PLANTED[mistake] in (violation.check for _, violations in days for violation in violations)
