"""Ten minutes of soak, as `make soak` has it; `SOAK_SECONDS` says otherwise."""

import os
import secrets

from tests.soak.run import Size, soak

SECONDS = float(os.environ.get("SOAK_SECONDS") or 600)


def test_every_event_is_done_once_in_ten_minutes_of_kills(disk):
    seed = int(os.environ.get("SOAK_SEED") or secrets.randbelow(10**9))

    outcome = soak(Size(seconds=SECONDS), seed, disk)

    print("\n".join(outcome.lines()))  # noqa: T201  seen if it fails: the seed is among them
    assert outcome.mistakes == []
    assert (outcome.lost, outcome.doubled) == (0, 0)
