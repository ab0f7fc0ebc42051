"""`python -m tests.soak`: SOAK_SECONDS (60), SOAK_CONCURRENCY (1) and SOAK_SEED (random) may be set.

With SOAK_DJANGO=1 one of the workers is Django's. With SOAK_POOLED=1 PgBouncer is between all and PostgreSQL, in
transaction mode; with SOAK_CRASHES=1 both crash, too.
Exit status 1 if it failed. With a concurrency there are three worker processes of so many slots.

After the storm servers go away, one story after the other, each for a twentieth of the time and 35 s at most.
"""

import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.soak.run import Size, soak

SHORTEST, LONGEST = 3, 35
"""Seconds of an outage; 30 are more than any timeout or pause there is."""
ROOT = Path(__file__).parents[2]
STORIES = ROOT / "tests" / "stories"
MEMORY_DISK = Path("/dev/shm")  # noqa: S108  the names in it are random


def main():
    seed = int(os.environ.get("SOAK_SEED") or secrets.randbelow(10**9))
    concurrency = int(os.environ.get("SOAK_CONCURRENCY") or 1)
    size = Size(
        seconds=float(os.environ.get("SOAK_SECONDS") or 60),
        workers=3 if concurrency > 1 else Size.workers,
        concurrency=concurrency,
        django=bool(os.environ.get("SOAK_DJANGO")),
        pooled=bool(os.environ.get("SOAK_POOLED")),
        crashes=bool(os.environ.get("SOAK_CRASHES")),
    )
    say(f"soaking for {size.seconds:g} s, {concurrency} at once in a worker, SOAK_SEED={seed}")
    disk = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else Path(tempfile.gettempdir())
    outcome = soak(size, seed, disk)
    for line in outcome.lines():
        say(line)
    for mistake in outcome.mistakes:
        say(f"FAILED: {mistake}")
    sys.exit(bool(outcome.mistakes) | outages(min(LONGEST, max(SHORTEST, size.seconds / 20))))


def outages(seconds):
    """Tell the stories of servers that go away, for so long each; give the exit status."""
    say(f"taking servers away for {seconds:g} s each")
    environ = os.environ | {"STORY_OUTAGE_SECONDS": f"{seconds:g}"}
    stories = sorted(map(str, STORIES.glob("test_servers_*.py")))
    command = [sys.executable, "-m", "pytest", "-vs", "--no-header", "-p", "no:cacheprovider", *stories]
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
