"""CONTRIBUTING.md says where each errand leads; a file that has moved is noticed here."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("hookonce", "jobs", "providers", "receiver", "tests")
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:receiver|jobs|providers|tests|bench|deploy|docs)/[^`\s]*)`")


def test_every_file_that_contributing_names_is_there():
    named = [
        path.partition("<")[0].rpartition("/")[0] if "<" in path else path for path in NAMED.findall(PAGE)
    ]

    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_contributing_is_read_in_five_minutes():
    assert len(PAGE.split()) <= 900


def test_nothing_but_its_tests_imports_the_benchmark():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]

    found = [
        file for file in files if re.search(r"^\s*(?:from|import) bench\b", file.read_text(), re.MULTILINE)
    ]

    assert files
    assert {file.parent for file in found} <= {ROOT / "tests/bench"}
