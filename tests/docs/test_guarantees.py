"""docs/reference/faults.md names tests; a promise whose test has gone is noticed here."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "faults.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_test_that_the_faults_name_exists():
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))

    missing = [f"{file}::{test}" for file, test in named if not has(ROOT / file, test)]

    assert len(named) > 30
    assert missing == []


def test_every_story_about_servers_and_deploys_is_among_the_faults():
    page = PAGE.read_text(encoding="utf-8")
    stories = [*ROOT.glob("tests/stories/test_servers_*.py"), ROOT / "tests/stories/test_deploys.py"]

    missing = [test for story in stories for test in stories_in(story) if f"::{test}`" not in page]

    assert missing == []


def has(file, test):
    return file.is_file() and (not test or test in stories_in(file))


def stories_in(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")}
