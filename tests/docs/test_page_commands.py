"""Runs docs/ as a reader would: the tutorial first, then every other page in the directory that it leaves behind."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest

from hookonce.receiver.cli import cli
from tests.support import deployed, forked_cli, page_commands
from tests.support.for_each import for_each

ROOT = Path(__file__).parents[2]
TUTORIAL = page_commands.DOCS / "tutorial.md"
TESTED_ELSEWHERE = {page_commands.DOCS / "adding-a-provider.md"}  # by tests/docs/test_adding_a_provider.py
WRITTEN = sorted(
    set(page_commands.DOCS.rglob("*.md")) - set(page_commands.DOCS.glob("reference/*.md")) - TESTED_ELSEWHERE
)
IN_PRODUCTION = [
    page_commands.DOCS / "how-to" / name for name in ("one-machine.md", "platforms.md", "reverse-proxy.md")
]
"""Each of them is followed in an empty directory, on servers that are given."""
IN_A_PROJECT = [
    page_commands.DOCS / "how-to" / f"{name}.md" for name in ("django", "fastapi", "flask", "your-database")
]
"""Run by tests/docs/test_framework_commands.py, each in a project of its own."""
ELSEWHERE = [TUTORIAL, *IN_PRODUCTION, *IN_A_PROJECT]
WITH_COMMANDS = [page for page in WRITTEN if page not in ELSEWHERE and page_commands.blocks(page)]
NOT_RUN = {
    ("docs/how-to/production-at-home.md", "needs an inbox elsewhere"),
    ("docs/how-to/agents.md", "needs an account"),
    ("docs/how-to/django.md", "installs"),
    ("docs/how-to/fastapi.md", "installs"),
    ("docs/how-to/flask.md", "installs"),
    ("docs/index.md", "installs"),
    ("docs/how-to/kubernetes.md", "needs Docker"),
    ("docs/how-to/kubernetes.md", "needs a cluster"),
    ("docs/how-to/consumers.md", "it needs a broker"),
    ("docs/how-to/order.md", "the entity is the reader's"),
    ("docs/how-to/wait.md", "the event is the reader's"),
    ("docs/how-to/one-machine.md", "changes the machine"),
    ("docs/how-to/one-machine.md", "reads what step 4 has written"),
    ("docs/how-to/platforms.md", "needs an account"),
    ("docs/how-to/production.md", "needs Docker"),
    ("docs/how-to/reconcile.md", "needs an account"),
    ("docs/how-to/rejected.md", "waits for a sender"),
    ("docs/how-to/reverse-proxy.md", "changes the machine"),
    ("docs/how-to/reverse-proxy.md", "needs your own name"),
    ("docs/how-to/steps.md", "needs an event whose step is stopped"),
    ("docs/how-to/tunnels.md", "needs an account"),
    ("docs/how-to/tunnels.md", "opens your machine to the world"),
    ("docs/tutorial.md", "installs"),
}
"""Blocks that nobody runs here, and why: whoever adds one, says so here too."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A directory with `hookonce`."""
    directory = tmp_path_factory.mktemp("programs")
    with forked_cli.hookonce(directory):
        yield directory


@pytest.fixture(scope="module")
def terminal(disk, programs):
    """A terminal in the directory that the tutorial leaves behind, `hookonce dev` running."""
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)  # PostgreSQL runs as another user if we are root
    opened = page_commands.Terminal(
        directory, page_commands.clean_environ(programs, Path(sys.executable).parent)
    )
    try:
        opened.follow(TUTORIAL)
        yield opened
    finally:
        opened.stop()
        shutil.rmtree(directory)


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_commands_of_a_page_do_what_it_says(terminal, page):
    terminal.follow(page)


@pytest.fixture
def production(database_url, redis_url, tmp_path, programs):
    """A terminal on a machine with servers, with the variables that the page about one machine sets."""
    servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "WEB_CONCURRENCY": "1"}
    opened = page_commands.Terminal(
        tmp_path,
        page_commands.clean_environ(programs, Path(sys.executable).parent) | deployed.variables() | servers,
    )
    yield opened
    opened.stop()


@pytest.mark.long
@pytest.mark.parametrize("page", IN_PRODUCTION, ids=lambda page: page.stem)
def test_commands_of_a_page_about_production_do_what_it_says(production, page):
    production.follow(page)


def test_blocks_that_are_not_run_are_these():
    found = {
        (block.page, block.said["not run"])
        for page in WRITTEN
        for block in page_commands.blocks(page)
        if not block.is_run
    }

    assert found == NOT_RUN


@for_each(WRITTEN)
def test_page_has_its_commands_where_they_are_found(page):
    fences = re.findall(
        r"^\s*(?:```|~~~)\s*\{?\.?(sh|bash|console|shell|zsh|shell-session)\b", page.read_text(), re.MULTILINE
    )

    assert len(fences) == len(page_commands.blocks(page))


def test_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("material")

    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--config-file",
            ".ci/mkdocs.yml",
            "--site-dir",
            tmp_path,
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stderr


def mentioned(page):
    return re.findall(r"(?<!`)`hookonce((?: [^`\n]+)+)`(?!`)", " ".join(page.read_text().split("\n")))


@for_each([page for page in WRITTEN if mentioned(page)])
def test_commands_in_the_text_of_a_page_exist(page):
    for text in mentioned(page):
        found, context = cli, click.Context(cli)
        words = text.split()
        while isinstance(found, click.Group) and words and words[0].isidentifier() and words[0].islower():
            found = found.get_command(context, words.pop(0))
        assert found is not None, text
        known = {name for each in found.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        assert {word for word in words if word.startswith("--") and word != "--"} <= known, text
