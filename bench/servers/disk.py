"""How long the disk takes to keep something just now: what a commit waits for, whoever else is at work on it."""

import os
import time
from pathlib import Path
from statistics import median

_FLUSHES = 15
_PAGE = os.urandom(8192)


def flush_milliseconds(directory: Path) -> float:
    """Return the median time of writing a page to a file of its own and flushing it."""
    path = directory / "flushes"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(_FLUSHES):
            file.write(_PAGE)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    path.unlink()
    return median(times)
