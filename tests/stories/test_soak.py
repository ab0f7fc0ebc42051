"""A short soak; the one of ten minutes is long/test_long_soak.py, and `make soak` takes what it is told."""

import math

import pytest

from tests.soak.run import Size, soak

SEED = 20_261_121
SHORT = Size(seconds=4, storm=30, copies=12, workers=2, senders=2, old=40, one_in=math.inf)


@pytest.mark.long
def test_every_event_is_done_once_while_processes_are_killed_at_work(disk):
    outcome = soak(SHORT, SEED, disk)

    assert outcome.mistakes == []
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert outcome.holding > 0
