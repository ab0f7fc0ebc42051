"""What processes cost, read from /proc: CPU time and resident memory."""

import os
from collections.abc import Iterable
from pathlib import Path

from hookonce.receiver.dev.embedded.process import children

_TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return a process and all it started that still run."""
    return [pid, *(each for child in children(pid) for each in tree(child))]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time used by a process, its living descendants and its buried children."""
    return sum(_ticks(each, buried=each == pid) for each in tree(pid)) / _TICK


def peak_megabytes(pids: Iterable[int]) -> float:
    """Return the highest resident memory any of these processes ever had."""
    return max(_megabytes(pid, "VmHWM") for pid in pids)


def resident_megabytes(pids: Iterable[int]) -> float:
    """Return the resident memory of the largest of these processes now."""
    return max(_megabytes(pid, "VmRSS") for pid in pids)


def _ticks(pid: int, *, buried: bool) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11 : 15 if buried else 13]))


def _megabytes(pid: int, field: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024
