"""`python -m tests.soak`: SOAK_SECONDS (60) and SOAK_SEED (random) may be set; exit status 1 if it failed."""

import os
import secrets
import sys
import tempfile
from pathlib import Path

from tests.soak.run import Size, soak

MEMORY_DISK = Path("/dev/shm")  # noqa: S108  the names in it are random


def main():
    seed = int(os.environ.get("SOAK_SEED") or secrets.randbelow(10**9))
    size = Size(seconds=float(os.environ.get("SOAK_SECONDS") or 60))
    say(f"soaking for {size.seconds:g} s, SOAK_SEED={seed}")
    disk = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else Path(tempfile.gettempdir())
    outcome = soak(size, seed, disk)
    for line in outcome.lines():
        say(line)
    for mistake in outcome.mistakes:
        say(f"FAILED: {mistake}")
    sys.exit(bool(outcome.mistakes))


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
