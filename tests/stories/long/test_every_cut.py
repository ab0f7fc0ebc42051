"""Every failpoint of every story, as often as the story goes through it; test_crash_loop.py has each of them once."""

import pytest

from tests.stories import test_crash_loop, test_crash_loop_of_many, test_django
from tests.support.stories import scenarios

DAYS = [day for days, _ in test_crash_loop.PARTS.values() for day in days]


def told(day):
    return day.__name__


@pytest.mark.parametrize("day", DAYS, ids=told)
def test_process_that_dies_anywhere_costs_nothing(lab, day):
    for point, violations in scenarios.cut_everywhere(lab, day):
        assert not violations, f"cut at {point}"


@pytest.mark.parametrize("day", test_crash_loop_of_many.DAYS, ids=told)
def test_process_of_many_that_dies_anywhere_costs_nothing(many_lab, day):
    for point, violations in scenarios.cut_everywhere(many_lab(), day):
        assert not violations, f"cut at {point}"


@pytest.mark.parametrize("day", test_django.DAYS, ids=told)
def test_worker_of_django_that_dies_anywhere_costs_nothing(django_lab, day):
    for point, violations in scenarios.cut_everywhere(django_lab(), day):
        assert not violations, f"cut at {point}"
