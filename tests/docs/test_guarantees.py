"""Stories are among the faults of docs/reference/faults.md; tables of the guarantees are read without test names."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "faults.md"


def test_every_story_about_servers_and_deploys_is_among_the_faults():
    page = PAGE.read_text(encoding="utf-8")
    files = [*ROOT.glob("tests/stories/test_servers_*.py"), ROOT / "tests/stories/test_deploys.py"]
    stories = [story for file in files for story in stories_in(file)]

    assert stories
    assert [story for story in stories if f"::{story}`" not in page] == []


def test_tables_of_the_guarantees_name_no_tests():
    page = (ROOT / "docs/explanation/guarantees.md").read_text(encoding="utf-8")

    assert [line for line in page.splitlines() if line.startswith("|") and "tests/" in line] == []


def stories_in(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
