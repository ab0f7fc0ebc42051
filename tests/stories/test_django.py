"""The promises, kept by workers that run on Django's connection and write through its ORM."""

import tempfile
from contextlib import ExitStack

import pytest

from tests.support.stories import scenarios
from tests.support.stories.lab import DjangoLab, opened
from tests.support.stories.nursery import Nursery

DAYS = (scenarios.day_of_work, scenarios.day_in_a_hurry)
STORIES = (
    scenarios.reply_to_the_finish_lost,
    scenarios.stale_worker_goes_on,
    scenarios.stale_worker_fails,
    scenarios.handler_that_commits_itself,
    scenarios.handler_that_rolls_back,
    scenarios.poison_kills_its_workers,
    scenarios.two_workers_at_once,
)
MISTAKES = {
    "in_django.marks_done_in_a_second_transaction": (scenarios.day_of_work, "doubled"),
    "in_django.believes_that_what_failed_is_rolled_back": (scenarios.handler_that_commits_itself, "doubled"),
}


@pytest.fixture(scope="module")
def nursery():
    parent = Nursery("django")
    yield parent
    parent.close()


@pytest.fixture
def make_lab(nurseries, nursery, database_url, redis_url):
    with tempfile.TemporaryDirectory(prefix="story-") as directory, ExitStack() as stack:

        def make(mistake=""):
            workers = nurseries | {"workers": nursery}
            return stack.enter_context(
                opened(DjangoLab(workers, database_url, redis_url, directory, mistake))
            )

        yield make


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.__name__)
def test_nothing_is_lost_or_doubled_wherever_djangos_worker_dies(make_lab, day):
    for point, violations in scenarios.cut_everywhere(make_lab(), day):
        assert not violations, f"cut at {point}"


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_story_ends_well_in_django(make_lab, story):
    lab = make_lab()

    story(lab)

    assert not lab.violations()


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistake_is_caught_in_django(make_lab, name):
    story, check = MISTAKES[name]
    lab = make_lab(name)

    if story in DAYS:
        found = [each for _, violations in scenarios.cut_everywhere(lab, story) for each in violations]
    else:
        story(lab)
        found = lab.violations()

    assert check in {violation.check for violation in found}
