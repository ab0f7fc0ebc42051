import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest

from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.slot_limit import Timeouts
from hookonce.jobs.stopping import hurrying, stopping
from tests.support.inbox import inbox

__all__ = ["inbox"]

IMPATIENT = Timeouts(
    again=timedelta(seconds=0.2), grace=timedelta(seconds=0.3), broken=timedelta(seconds=0.5)
)
"""Steps after a time limit that follow one another within parts of a second."""


@pytest.fixture
def let_go():
    """Set where the test, or its pool, ends: what handlers that nothing ends wait for."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def pool_of(inbox, let_go):
    """A context manager: a pool of so many slots that works on the inbox until the block ends, and lets go then."""

    @contextmanager
    def pool_of(slots, **options):
        pool = Pool(inbox.settings, inbox.registry, slots=slots, **options)
        try:
            yield pool
        finally:
            let_go.set()
            pool.close()
            stopping.clear()
            hurrying.clear()

    return pool_of
