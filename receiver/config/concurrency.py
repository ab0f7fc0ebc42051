"""How many runs a worker process has under way at once (`[receiver] concurrency`), and how many processes receive."""

import os
from collections.abc import Mapping

VARIABLE = "HOOKONCE_CONCURRENCY"
MAX_CONCURRENCY = 256
"""Each takes a thread, and a connection while it has a transaction."""


def concurrency(of_file: int, environ: Mapping[str, str], mistakes: list[str]) -> int:
    """Return what the environment says, or else the file."""
    said = environ.get(VARIABLE)
    if not said:
        return of_file
    if said.isascii() and said.isdigit() and 1 <= int(said) <= MAX_CONCURRENCY:
        return int(said)
    mistakes.append(f"{VARIABLE} is {said!r}; expected a number from 1 to {MAX_CONCURRENCY}")
    return of_file


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(of_cores: int) -> int:
    """Return how many processes receive where nobody says: half as many as there are cores, and two at least.

    PostgreSQL and the workers need the other half. One alone makes larger batches, and gained nothing by it on two
    cores; and at a crash, or at one slow parse, all senders would wait (docs/decisions/0038).
    """
    return max(2, of_cores // 2)
