import time
from contextlib import contextmanager

import pytest

from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.stopping import stopping
from tests.support.inbox import inbox

__all__ = ["inbox"]

ENOUGH = 20.0


def wait_for(condition, seconds=ENOUGH):
    """Wait until something is so; give what it was."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, condition
        time.sleep(0.01)
    return found


@pytest.fixture
def pool_of(inbox):
    """A context manager: a pool of so many slots that works on the inbox until the block ends."""

    @contextmanager
    def pool_of(slots, **options):
        pool = Pool(inbox.settings, inbox.registry, slots=slots, **options)
        try:
            yield pool
        finally:
            pool.close()
            stopping.clear()

    return pool_of
