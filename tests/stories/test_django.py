"""The promises, kept by workers that run on Django's connection and write through its ORM."""

import pytest

from tests.support.stories import scenarios

DAYS = (scenarios.day_of_work, scenarios.day_of_batches_of_handlers, scenarios.day_in_a_hurry)
STORIES = (
    scenarios.reply_to_the_finish_lost,
    scenarios.stale_worker_goes_on,
    scenarios.stale_worker_fails,
    scenarios.handler_that_commits_itself,
    scenarios.handler_that_rolls_back,
    scenarios.poison_kills_its_workers,
    scenarios.two_workers_at_once,
)


def cut_after_the_handler(lab):
    scenarios.cut_at(lab, "handler.returned", scenarios.day_of_work)


MISTAKES = {
    "in_django.marks_done_in_a_second_transaction": (cut_after_the_handler, "doubled"),
    "in_django.leaves_the_guard_out": (scenarios.handler_that_commits_itself, "doubled"),
}


def test_nothing_is_lost_or_doubled_wherever_djangos_worker_dies(django_lab):
    for point, violations in scenarios.cut_at_each(django_lab(), DAYS):
        assert not violations, f"cut at {point}"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_story_ends_well_in_django(django_lab, story):
    lab = django_lab()

    story(lab)

    assert not lab.violations()


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistake_is_caught_in_django(django_lab, name):
    story, check = MISTAKES[name]
    lab = django_lab(name)

    story(lab)

    assert check in {violation.check for violation in lab.violations()}
