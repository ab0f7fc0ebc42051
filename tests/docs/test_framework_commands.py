"""Follows the pages on Django, Flask and FastAPI from an empty folder; after Django, that on the database."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from hookonce.receiver.dev.embedded import binaries
from tests.support import forked_cli, page_commands

HOW_TO = page_commands.DOCS / "how-to"
PAGES = {"django": ["django", "your-database"], "flask": ["flask"], "fastapi": ["fastapi"]}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A directory with `hookonce`."""
    directory = tmp_path_factory.mktemp("programs")
    with forked_cli.hookonce(directory):
        yield directory


@pytest.fixture
def folder(disk):
    """An empty folder."""
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)  # PostgreSQL runs as another user if we are root
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def terminal(folder, programs):
    """A terminal in the empty folder."""
    environ = page_commands.clean_environ(programs, Path(sys.executable).parent, binaries.postgres(None))
    opened = page_commands.Terminal(folder, environ)
    yield opened
    opened.stop()


@pytest.mark.parametrize("pages", PAGES.values(), ids=PAGES)
def test_commands_of_the_pages_do_what_they_say(terminal, pages):
    for page in pages:
        terminal.follow(HOW_TO / f"{page}.md")
