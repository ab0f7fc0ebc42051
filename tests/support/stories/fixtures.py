"""Fixtures of the stories that start processes of their own."""

import contextlib
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from tests.support.stories.backup import Backup
from tests.support.stories.lab import DjangoLab, Lab, ManyLab, opened
from tests.support.stories.nursery import Nursery

DEADLINE = 8.5
"""Seconds in which a sender has any answer; most give ten."""


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
def made_lab(nurseries, database_url, redis_url):
    """Make labs of a kind, whose processes may have a mistake planted in them."""
    with tempfile.TemporaryDirectory(prefix="story-") as directory, contextlib.ExitStack() as stack:

        def make(kind, mistake="", url=database_url, parents=nurseries):
            return stack.enter_context(opened(kind(parents, url, redis_url, Path(directory), mistake)))

        yield make


@pytest.fixture
def wrong_lab(made_lab):
    """Make a lab whose processes have a mistake planted in them."""
    return partial(made_lab, Lab)


@pytest.fixture
def many_lab(made_lab):
    """Make a lab of workers that run many at once."""
    return partial(made_lab, ManyLab)


@pytest.fixture(scope="module")
def django_nursery():
    parent = Nursery("django")
    yield parent
    parent.close()


@pytest.fixture
def django_lab(made_lab, nurseries, django_nursery):
    """Make a lab whose workers are Django's."""
    return partial(made_lab, DjangoLab, parents=nurseries | {"workers": django_nursery})


@pytest.fixture
def backup(data_directory):
    """A ledger of the test's own, which can be put back to an earlier state."""
    made = Backup(data_directory)
    yield made
    made.postgres.stop()


@pytest.fixture
def stack(running_stack):
    """The stack, to be left with nothing lost, nothing doubled, and no process of it started anew."""
    before = running_stack.receivers + running_stack.workers
    running_stack.rest()
    began = time.monotonic()
    yield running_stack
    assert running_stack.violations() == []
    print(running_stack.figures(began))  # noqa: T201  for `make soak`
    assert {answer.status for answer in running_stack.since(began)} <= {200, 503}
    assert max(answer.seconds for answer in running_stack.since(began)) < DEADLINE
    assert running_stack.receivers + running_stack.workers == before
