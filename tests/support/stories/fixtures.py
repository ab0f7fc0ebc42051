"""Fixtures of the stories that start processes of their own."""

import contextlib
import tempfile
from pathlib import Path

import pytest

from tests.support.stories.backup import Backup
from tests.support.stories.lab import Lab, opened
from tests.support.stories.nursery import Nursery


@pytest.fixture(scope="session")
def nurseries():
    """The warm parents of all processes."""
    parents = {kind: Nursery(kind) for kind in ("receivers", "workers")}
    yield parents
    for parent in parents.values():
        parent.close()


@pytest.fixture
def lab(nurseries, database_url, redis_url):
    with (
        tempfile.TemporaryDirectory(prefix="story-") as directory,
        opened(Lab(nurseries, database_url, redis_url, Path(directory))) as lab,
    ):
        yield lab


@pytest.fixture
def wrong_lab(nurseries, database_url, redis_url):
    """Make a lab whose processes have a mistake planted in them."""
    with tempfile.TemporaryDirectory(prefix="story-") as directory, contextlib.ExitStack() as stack:

        def make(mistake, url=database_url):
            return stack.enter_context(opened(Lab(nurseries, url, redis_url, Path(directory), mistake)))

        yield make


@pytest.fixture
def backup(data_directory):
    """A ledger of the test's own, which can be put back to an earlier state."""
    made = Backup(data_directory)
    yield made
    made.postgres.stop()
