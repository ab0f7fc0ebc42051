"""The benchmark counts the CPU that is not its own, from a /proc of the test's own making."""

import os
import subprocess
import sys

import pytest

from bench.servers.other_work import OtherWork
from bench.servers.process_costs import cpu_seconds
from tests.support.waiting import until

TICKS = os.sysconf("SC_CLK_TCK")
OWN, SHELL, OTHER = 100, 50, 900
KERNEL_THREAD = 0x00200000
SPUN = 0.2  # seconds


class Proc:
    """A /proc with two cores: `spend` gives seconds of CPU to processes, then half a minute has passed."""

    def __init__(self, path):
        self.path = path
        self.now = 0.0
        self.processes = {}
        self.stolen = 0
        self.start(1, 0)
        self.start(SHELL, 1)
        self.start(OWN, SHELL)
        self._write_stat()

    def start(self, pid, parent, name="python3 -m (it)", flags=0):
        self.processes[pid] = {"parent": parent, "name": name, "flags": flags, "own": 0, "reaped": 0}
        self.processes[pid]["began"] = int(self.now * TICKS) + pid
        self._write(pid)

    def spend(self, seconds, pid, *, reaped=False):
        self.processes[pid]["reaped" if reaped else "own"] += int(seconds * TICKS)
        self._write(pid)

    def adopt(self, pid, parent):
        self.processes[pid]["parent"] = parent
        self._write(pid)

    def end(self, pid, *, reaper):
        ended = self.processes.pop(pid)
        (self.path / str(pid) / "stat").unlink()
        self.spend((ended["own"] + ended["reaped"]) / TICKS, reaper, reaped=True)

    def pass_time(self, seconds, stolen=0.0):
        self.now += seconds
        self.stolen += int(stolen * TICKS)
        self._write_stat()

    def _write(self, pid):
        each = self.processes[pid]
        (self.path / str(pid)).mkdir(exist_ok=True)
        state = f"S {each['parent']} 1 1 0 -1 {each['flags']} 0 0 0 0"
        times = f"{each['own']} 0 {each['reaped']} 0 20 0 1 0 {each['began']} 0 0"
        (self.path / str(pid) / "stat").write_text(f"{pid} ({each['name']}) {state} {times}\n")

    def _write_stat(self):
        total = int(self.now * TICKS * 2)
        (self.path / "stat").write_text(
            f"cpu  {total - self.stolen} 0 0 0 0 0 0 {self.stolen} {total} 0\ncpu0 1\n"
        )


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def watch(proc):
    return OtherWork(proc.now, proc.path, OWN)


def test_own_work_and_its_descendants_are_no_other_work(proc):
    proc.start(101, OWN)
    work = watch(proc)

    proc.start(102, 101)
    for pid in (OWN, 101, 102):
        proc.spend(20, pid)
    proc.pass_time(30)
    work.look(proc.now)

    assert work.most == {"process": "", "core": 0.0, "steal": 0.0}


def test_own_process_stays_own_when_it_outlives_its_parent(proc):
    proc.start(101, OWN)
    proc.start(102, 101)
    work = watch(proc)

    proc.end(101, reaper=OWN)
    proc.adopt(102, 1)
    proc.spend(20, 102)
    proc.pass_time(30)
    work.look(proc.now)
    proc.end(102, reaper=1)
    proc.pass_time(30)
    work.look(proc.now)

    assert work.most["core"] == 0


@pytest.mark.parametrize("parent", [1, SHELL])
@pytest.mark.parametrize("is_there", [True, False])
def test_other_process_is_named_with_its_share_of_a_core(proc, parent, is_there):
    if is_there:
        proc.start(OTHER, parent, "make")
        proc.spend(300, OTHER)
    work = watch(proc)

    if not is_there:
        proc.start(OTHER, parent, "make")
    proc.spend(1.8, OTHER)
    proc.pass_time(30)
    work.look(proc.now)

    assert (work.most["process"], work.most["core"]) == (f"make ({OTHER})", 0.06)


def test_children_that_come_and_go_are_their_parents_work(proc):
    proc.start(OTHER, SHELL, "make")
    work = watch(proc)

    for number in range(6):
        proc.spend(2, OTHER, reaped=True)  # began and ended between two looks
        proc.pass_time(5)
        work.look(proc.now)
        assert number == 5 or work.most["core"] == 0  # no period has ended

    assert (work.most["process"], work.most["core"]) == (f"make ({OTHER})", 0.4)


def test_child_that_ends_is_not_counted_twice(proc):
    proc.start(OTHER, SHELL, "make")
    proc.start(OTHER + 1, OTHER, "cc")
    proc.spend(600, OTHER + 1)
    work = watch(proc)

    proc.end(OTHER + 1, reaper=OTHER)
    proc.pass_time(30)
    work.look(proc.now)

    assert work.most["core"] == 0


def test_process_id_that_is_used_again_is_another_process(proc):
    proc.start(101, OWN)
    work = watch(proc)

    proc.end(101, reaper=OWN)
    proc.pass_time(5)
    proc.start(101, SHELL, "tar")
    proc.spend(3, 101)
    proc.pass_time(25)
    work.look(proc.now)

    assert (work.most["process"], work.most["core"]) == ("tar (101)", 0.1)


def test_kernel_threads_are_left_out(proc):
    proc.start(OTHER, 2, "kswapd0", flags=KERNEL_THREAD)
    work = watch(proc)

    proc.spend(20, OTHER)
    proc.pass_time(30)
    work.look(proc.now)

    assert work.most["core"] == 0


def test_worst_period_is_kept_and_the_last_one_is_judged_too(proc):
    proc.start(OTHER, SHELL, "make")
    work = watch(proc)

    for seconds, stolen in ((6, 1.2), (0, 6), (0, 0)):
        proc.spend(seconds, OTHER)
        proc.pass_time(30, stolen)
        work.look(proc.now)
    assert work.most == {"process": f"make ({OTHER})", "core": 0.2, "steal": 0.1}

    proc.spend(6, OTHER)
    proc.pass_time(10)
    work.look(proc.now, is_last=True)
    assert work.most["core"] == 0.6


@pytest.fixture
def started():
    """Start a program that runs until the test ends."""
    processes = []

    def start(code):
        processes.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE))
        return processes[-1].pid

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_real_machine_shows_a_process_that_is_not_the_benchmarks(started):
    spinning, outsider = started("while True: pass"), started("input()")
    from_outside, from_here = OtherWork(0, own=outsider), OtherWork(0)

    until(lambda: cpu_seconds(spinning) > SPUN)
    for work in (from_outside, from_here):
        work.look(SPUN, is_last=True)

    assert from_outside.most["core"] > 0
    assert f"({spinning})" not in from_here.most["process"]
