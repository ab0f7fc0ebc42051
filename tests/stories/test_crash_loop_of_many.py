"""The crash loop for workers that run several at once, with handlers of every kind."""

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


@pytest.fixture
def many(nurseries, database_url, redis_url):
    with (
        tempfile.TemporaryDirectory(prefix="story-") as directory,
        opened(ManyLab(nurseries, database_url, redis_url, Path(directory))) as lab,
    ):
        yield lab


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.__name__)
def test_nothing_is_lost_or_doubled_wherever_a_process_of_many_dies(many, day):
    for point, violations in scenarios.cut_everywhere(many, day):
        assert not violations, f"cut at {point}"


def test_days_of_many_go_through_every_failpoint_of_workers(many):
    met = {point for day in DAYS for point in scenarios.points_of(many, day)}

    assert met >= OF_WORKERS | OF_STEPS | set(OF_LONG_RUNS)
