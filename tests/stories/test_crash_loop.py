import pytest

from receiver.failpoints import POINTS
from tests.stories.support import scenarios

DAYS = (scenarios.day_of_deliveries, scenarios.day_of_work, scenarios.day_in_a_hurry)
met = set()


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.__name__)
def test_nothing_is_lost_or_doubled_wherever_the_process_dies(lab, day):
    for point, violations in scenarios.cut_everywhere(lab, day):
        assert not violations, f"cut at {point}"
        met.add(point)


def test_the_process_died_at_every_failpoint_there_is():
    if not met:
        pytest.skip("says something about the tests above only")

    assert met - {None} == set(POINTS)
