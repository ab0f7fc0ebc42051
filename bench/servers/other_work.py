"""The CPU that other processes and other machines of the same host take while the benchmark measures, from /proc.

A figure of a disturbed machine is no figure of hookonce. The benchmark's own work is that of the process that measures
and of all that it started, those that outlived their parents too. Kernel threads work for others and are left out.
"""

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

LOOK_INTERVAL = 5.0  # seconds
PERIOD = 30.0
"""Seconds over which a share is taken: a daemon that wakes up is no disturbance, half a scenario is one."""
_TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x00200000
_STEAL = 7
_GUESTS = 8
"""Where the times of guests begin in the first line of /proc/stat: they are in the times before already."""
_INIT = 1
"""Reaps orphans, the benchmark's among them: what they took is not its own work."""


class _Process(NamedTuple):
    pid: int
    name: str
    parent: int
    began: int
    ticks: int
    reaped: int
    is_kernel: bool


class OtherWork:
    """Counts from look to look; `most` is of the worst period so far. `now` is in seconds of a steady clock."""

    def __init__(self, now: float, proc: Path = Path("/proc"), own: int | None = None) -> None:
        self._proc = proc
        self._seen = {each.pid: each for each in self._processes()}
        measuring = self._seen[own or os.getpid()]
        self._own = {(measuring.pid, measuring.began)}
        self._adopt(self._seen)
        self._taken: Counter[tuple[int, str]] = Counter()
        self._since, self._stolen_before = now, self._stolen()
        self.most: dict[str, Any] = {"process": "", "core": 0.0, "steal": 0.0}
        """The process that took most, its share of a core, and the share of all cores that was stolen."""

    def look(self, now: float, *, is_last: bool = False) -> None:
        """Count what was taken since the last look, at the end of a period as a share of it."""
        seen = {each.pid: each for each in self._processes()}
        self._adopt(seen)
        alive = {(each.pid, each.began) for each in seen.values()}
        ended = [each for each in self._seen.values() if (each.pid, each.began) not in alive]
        for each in seen.values():
            if (each.pid, each.began) not in self._own and not each.is_kernel:
                self._taken[each.pid, each.name] += self._taken_by(each, ended)
        self._seen = seen
        if is_last or now - self._since >= PERIOD:
            self._end_period(now)

    def _taken_by(self, process: _Process, ended: list[_Process]) -> int:
        """Return the ticks since the last look, those of children that began and ended in between among them."""
        before = self._seen.get(process.pid)
        if before is None or before.began != process.began:
            before = process._replace(ticks=0, reaped=0)
        ticks = process.ticks - before.ticks
        if process.pid != _INIT:
            counted = sum(each.ticks + each.reaped for each in ended if each.parent == process.pid)
            ticks += max(process.reaped - before.reaped - counted, 0)
        return ticks

    def _end_period(self, now: float) -> None:
        seconds = max(now - self._since, LOOK_INTERVAL)
        stolen, total = (after - at for after, at in zip(self._stolen(), self._stolen_before, strict=True))
        self.most["steal"] = max(self.most["steal"], round(stolen / max(total, 1), 4))
        for (pid, name), ticks in self._taken.most_common(1):
            core = round(ticks / _TICKS / seconds, 4)
            if core > self.most["core"]:
                self.most |= {"process": f"{name} ({pid})", "core": core}
        self._taken.clear()
        self._since, self._stolen_before = now, self._stolen()

    def _adopt(self, seen: Mapping[int, _Process]) -> None:
        """Add the descendants of the benchmark's processes to them; a process stays its own when its parent ends."""
        children: dict[int, list[_Process]] = {}
        for each in seen.values():
            children.setdefault(each.parent, []).append(each)
        found = [each for each in seen.values() if (each.pid, each.began) in self._own]
        while found:
            process = found.pop()
            self._own.add((process.pid, process.began))
            found += children.get(process.pid, [])

    def _stolen(self) -> tuple[int, int]:
        """Return the ticks stolen from all cores so far, and all ticks."""
        line = (self._proc / "stat").read_text(encoding="ascii").partition("\n")[0]
        times = [int(each) for each in line.split()[1 : _GUESTS + 1]]
        return times[_STEAL], sum(times)

    def _processes(self) -> Iterator[_Process]:
        for path in self._proc.glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has just ended
                before, _, after = path.read_text(encoding="utf-8", errors="replace").rpartition(")")
                fields = after.split()
                yield _Process(
                    pid=int(path.parent.name),
                    name=before.partition("(")[2],
                    parent=int(fields[1]),
                    began=int(fields[19]),
                    ticks=int(fields[11]) + int(fields[12]),
                    reaped=int(fields[13]) + int(fields[14]),
                    is_kernel=bool(int(fields[6]) & _KERNEL_THREAD),
                )


@contextlib.contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Look on as long as the block lasts; what is given has `OtherWork.most` at its end."""
    work = OtherWork(time.monotonic())
    has_ended = threading.Event()

    def look_on() -> None:
        while not has_ended.wait(LOOK_INTERVAL):
            work.look(time.monotonic())

    thread = threading.Thread(target=look_on, daemon=True)
    thread.start()
    try:
        yield work.most
    finally:
        has_ended.set()
        thread.join()
        work.look(time.monotonic(), is_last=True)
