"""A short soak; `make soak` is the long one."""

from tests.soak.run import Size, soak

SEED = 20_261_121


def test_every_event_is_done_once_while_processes_are_killed_at_work(disk):
    outcome = soak(Size(seconds=5, storm=60, copies=12), SEED, disk)

    assert outcome.mistakes == []
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert outcome.holding > 0
