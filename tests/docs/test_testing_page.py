"""Runs the five examples of docs/how-to/testing.md as its reader would: files in a folder, and pytest."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.page_commands import DOCS
from tests.support.type_checker import mypy

PAGE = (DOCS / "how-to/testing.md").read_text()
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
EXAMPLES = re.findall(r"^## \d\. ", PAGE, re.MULTILINE)


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(project, *words):
    ours = ("HOOKONCE_", "DATABASE_URL", "REDIS_URL", "PYTEST_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, *words], cwd=project, env=environ, capture_output=True, text=True, check=False
    )


def require_all_pass(project, *options):
    done = run(project, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *options)

    assert re.search(r"^13 passed", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_page_has_five_examples_in_files_of_their_own():
    assert len(EXAMPLES) == 5
    assert len([name for name in FILES if name.startswith("test_")]) == 5
    assert PAGE.count("```python\n# ") == len(FILES)


def test_examples_of_the_page_pass(project):
    require_all_pass(project)


def test_examples_of_the_page_pass_a_strict_type_checker(project):
    assert mypy(project, *FILES) == (0, [])


@pytest.mark.long
def test_example_finds_a_handler_that_is_not_once_only(project):
    text = FILES["handlers.py"].replace(
        "    return {", "    session.connection().exec_driver_sql('COMMIT')\n    return {"
    )
    (project / "handlers.py").write_text(text)

    done = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_once.py", "test_crashes.py")

    assert done.returncode == 1
    assert "is dead, not done" in done.stdout  # and why, as the ledger knows it
