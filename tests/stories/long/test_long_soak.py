"""Ten minutes of soak as `make soak` has it, half of them with workers of many slots; `SOAK_SECONDS` says otherwise."""

import os
import secrets

import pytest

from tests.soak.run import Size, soak

SECONDS = float(os.environ.get("SOAK_SECONDS") or 600)
SIZES = {
    "one at a time": Size(seconds=SECONDS / 2),
    "many at once": Size(seconds=SECONDS / 2, workers=3, concurrency=8),
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_every_event_is_done_once_in_minutes_of_kills(disk, size):
    seed = int(os.environ.get("SOAK_SEED") or secrets.randbelow(10**9))

    outcome = soak(size, seed, disk)

    print("\n".join(outcome.lines()))  # noqa: T201  shown if it fails; the seed is among them
    assert outcome.mistakes == []
    assert (outcome.lost, outcome.doubled) == (0, 0)
