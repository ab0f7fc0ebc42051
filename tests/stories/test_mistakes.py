import ast
from pathlib import Path

import pytest

from tests.stories import mistakes
from tests.stories.mistakes import PLANTED
from tests.stories.test_crash_windows import STORIES
from tests.support.stories import scenarios

OTHER_SERVERS = {"restored_from_a_backup", "neighbours_share_a_window"}
TOLD = {name: planted for name, planted in PLANTED.items() if planted.story not in OTHER_SERVERS}
FIRST_OF_ITS_CHECK = {planted.check: name for name, planted in reversed(TOLD.items())}
"""What `make test` plants: each check of the history must notice something. `make test-all` plants everything."""


def judged(lab, name, at=None):
    """What the checker says to a story, day by day if it is told with a cut wherever it meets a failpoint."""
    story = getattr(scenarios, name)
    if name.startswith("day"):
        for _, violations in scenarios.cut_everywhere(lab, story, at):
            yield from violations
    else:
        story(lab)
        yield from lab.violations()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FIRST_OF_ITS_CHECK.values() else pytest.mark.long)
        for name in TOLD
    ],
)
def test_planted_mistake_is_caught_by_its_story(wrong_lab, name):
    mistake = PLANTED[name]

    found = (violation.check for violation in judged(wrong_lab(name), mistake.story, mistake.at))

    assert mistake.check in found


def test_window_without_its_timeline_is_caught_by_a_restored_ledger(wrong_lab, backup):
    mistake = PLANTED["receiving.leaves_the_timeline_out"]
    lab = wrong_lab("receiving.leaves_the_timeline_out", backup.url)

    getattr(scenarios, mistake.story)(lab, backup)

    assert mistake.check in {violation.check for violation in lab.violations()}


def test_window_without_its_database_is_caught_by_a_ledger_beside_ours(wrong_lab, fresh_database):
    mistake = PLANTED["receiving.leaves_the_database_out"]
    with fresh_database() as url:
        neighbour, lab = (wrong_lab("receiving.leaves_the_database_out", *other) for other in ([url], []))

        getattr(scenarios, mistake.story)(lab, neighbour)

        assert mistake.check in {violation.check for violation in lab.violations()}


@pytest.mark.parametrize(
    "plant",
    [
        lambda: mistakes.replace(mistakes, "no_such_thing", None),
        lambda: mistakes.replace(Inheriting, "inherited", None),
        lambda: mistakes.reword(mistakes, "no such text", "b"),
    ],
)
def test_mistake_that_no_longer_fits_the_product_fails(plant):
    with pytest.raises(AssertionError, match="no longer"):
        plant()


class Inherited:
    inherited = True


class Inheriting(Inherited):
    pass


@pytest.mark.parametrize("module", ["receiving", "working"])
def test_mistakes_change_the_product_by_what_fails_if_it_has_changed(module):
    source = (Path(mistakes.__file__).parent / f"{module}.py").read_text()
    nodes = list(ast.walk(ast.parse(source)))

    stored = [n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    called = [n.id for n in nodes if isinstance(n, ast.Name) and n.id in {"setattr", "delattr"}]
    assert [ast.unparse(n) for n in stored if ast.unparse(n.value) != "self"] == []
    assert called == []


def test_every_story_that_catches_a_mistake_passes_without_it(lab):
    """Those of test_crash_windows.py are told there."""
    told = {story.__name__ for story in STORIES} | {scenarios.poison_kills_its_workers.__name__}
    stories = {mistake.story for mistake in TOLD.values() if not mistake.story.startswith("day")}
    assert stories & told

    for story in sorted(stories - told):
        assert list(judged(lab, story)) == [], story
        lab.forget()
