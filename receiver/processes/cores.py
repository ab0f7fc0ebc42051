"""How many processors there are, and how many processes receive on them."""

import os


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(of_cores: int) -> int:
    """Return how many processes receive where nobody says: half as many as there are cores, and two at least.

    PostgreSQL and the workers need the other half. One alone makes larger batches, and gained nothing by it on two
    cores; and at a crash, or at one slow parse, all senders would wait (docs/decisions/0038).
    """
    return max(2, of_cores // 2)
