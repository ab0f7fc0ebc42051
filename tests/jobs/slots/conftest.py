import time
from contextlib import contextmanager
from datetime import timedelta

import pytest

from hookonce.jobs.slots import pool as pools
from hookonce.jobs.slots import slot_limit
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.stopping import hurrying, stopping
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
            hurrying.clear()

    return pool_of


@pytest.fixture
def impatient(monkeypatch):
    """Time limits that follow one another within parts of a second."""
    monkeypatch.setattr(slot_limit, "GRACE_PERIOD", timedelta(seconds=0.3))
    monkeypatch.setattr(slot_limit, "AGAIN", 0.2)
    monkeypatch.setattr(pools, "BREAK_GRACE", timedelta(seconds=0.5))
