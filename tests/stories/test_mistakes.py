import pytest

from tests.stories.mistakes import PLANTED
from tests.stories.support import scenarios

TOLD = {name: planted for name, planted in PLANTED.items() if planted.story != "restored_from_a_backup"}


def judged(lab, name):
    """What the checker says to a story, day by day if it is told with a cut at every failpoint."""
    story = getattr(scenarios, name)
    if name.startswith("day"):
        for _, violations in scenarios.cut_everywhere(lab, story):
            yield from violations
    else:
        story(lab)
        yield from lab.violations()


@pytest.mark.parametrize("name", TOLD)
def test_planted_mistake_is_caught_by_its_story(wrong_lab, name):
    mistake = PLANTED[name]

    found = (violation.check for violation in judged(wrong_lab(name), mistake.story))

    assert mistake.check in found


def test_window_without_its_timeline_is_caught_by_a_restored_ledger(wrong_lab, backup):
    mistake = PLANTED["receiving.leaves_the_timeline_out"]
    lab = wrong_lab("receiving.leaves_the_timeline_out", backup.url)

    getattr(scenarios, mistake.story)(lab, backup)

    assert mistake.check in {violation.check for violation in lab.violations()}


def test_every_story_that_catches_a_mistake_passes_without_it(lab):
    stories = sorted({mistake.story for mistake in TOLD.values() if not mistake.story.startswith("day")})

    for story in stories:
        assert list(judged(lab, story)) == [], story
        lab.forget()
