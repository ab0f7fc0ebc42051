"""Runs the pages on Django, Flask and FastAPI, each in a copy of its example; after Django, that on the database."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from hookonce.receiver.dev.embedded import binaries
from tests.support import forked_cli, page_commands
from tests.support.applications import EXAMPLES

HOW_TO = page_commands.DOCS / "how-to"
PAGES = {"django": ["django", "your-database"], "flask": ["flask"], "fastapi": ["fastapi"]}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A directory with `hookonce`."""
    directory = tmp_path_factory.mktemp("programs")
    with forked_cli.hookonce(directory):
        yield directory


@pytest.fixture
def terminal(request, disk, programs):
    """A terminal in a copy of an example."""
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)  # PostgreSQL runs as another user if we are root
    shutil.copytree(EXAMPLES / request.param, directory, dirs_exist_ok=True)
    environ = page_commands.clean_environ(programs, Path(sys.executable).parent, binaries.postgres(None))
    opened = page_commands.Terminal(directory, environ)
    try:
        yield opened
    finally:
        opened.stop()
        shutil.rmtree(directory)


@pytest.mark.parametrize(("terminal", "pages"), PAGES.items(), indirect=["terminal"], ids=PAGES)
def test_commands_of_the_pages_do_what_they_say(terminal, pages):
    for page in pages:
        for block in page_commands.blocks(HOW_TO / f"{page}.md"):
            assert block.is_run
            terminal.run(block)
