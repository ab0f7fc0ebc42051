"""The crash loop for workers that run several at once, with handlers of every kind.

Each failpoint is cut once; long/test_every_cut.py cuts each as often as it comes.
"""

import pytest

from hookonce.receiver.failpoints import OF_LONG_RUNS, OF_OPERATIONS, POINTS
from tests.support.stories import scenarios

DAYS = (scenarios.day_of_many_at_once, scenarios.day_of_batches_beside_many)
OF_WORKERS = {
    point
    for point in POINTS
    if point.partition(".")[0] in {"handler", "run", "failure", "batch", "job", "sweep"}
} - {"run.released"}
"""What is leased and not started is released by a worker that has no time left, one at a time or not."""
OF_STEPS = set(OF_OPERATIONS[:-1])


PLANTED = {
    "working.charges_all_that_were_under_way": ("run.claimed", "overcharged"),
    "working.commits_what_a_failed_attempt_wrote": ("job.begun", "effect_lost"),
}
"""The failpoint at which a day is cut, and the check that must notice."""


def test_nothing_is_lost_or_doubled_wherever_a_process_of_many_dies(many_lab):
    cut = set()
    for point, violations in scenarios.cut_at_each(many_lab(), DAYS):
        assert not violations, f"cut at {point}"
        cut.add(point)

    assert cut >= OF_WORKERS | OF_STEPS | set(OF_LONG_RUNS)


@pytest.mark.parametrize("mistake", PLANTED)
def test_planted_mistake_is_caught_where_many_run_at_once(many_lab, mistake):
    at, check = PLANTED[mistake]

    days = scenarios.cut_everywhere(many_lab(mistake), scenarios.day_of_many_at_once, at)

    assert check in (violation.check for _, violations in days for violation in violations)
