"""Fixtures of the stories that start processes of their own."""

import tempfile
from pathlib import Path

import pytest

from tests.stories.support.lab import Lab, opened
from tests.stories.support.nursery import Nursery


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
    with tempfile.TemporaryDirectory(prefix="story-") as directory:
        made = []

        def make(mistake):
            made.append(Lab(nurseries, database_url, redis_url, Path(directory), mistake))
            return made[-1]

        yield make
        for each in made:
            each.close()
