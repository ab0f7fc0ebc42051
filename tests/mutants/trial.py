"""One mutant against the tests that execute its line, until one fails: caught, survived, or out of time."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from tests.mutants import copies
from tests.mutants.mutant import Mutant
from tests.mutants.reach import Test

TESTS_TIME = timedelta(seconds=70)
"""How long the tests that are chosen may take together, as they did without a mistake."""
NO_FURTHER = timedelta(seconds=78)
"""After which no test is begun: a mistake may make them slow."""
TIME_LIMIT = timedelta(seconds=90)
"""For everything, from the start of pytest; both are longer where the machine is said to be slow."""
_TO_END = 5.0
"""Seconds for pytest to stop its servers, once it was told to end."""
_PLUGINS = ("-p", "mutants_plugin", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:rerunfailures")
_INTERRUPTED = 2
"""pytest's exit status where it was told to begin no further test."""
_MARK = "HOOKONCE_MUTANT"
"""In the environment of whatever a trial starts."""


class Verdict(StrEnum):
    """What the tests made of a mutant; out of time is what a test hung for."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    OUT_OF_TIME = "out of time"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one mutant: by which test it was caught and how that failed, or of how many tests it was not."""

    verdict: Verdict
    by: str = ""
    said: str = ""
    tests: int = 0
    of: int = 0
    seconds: float = 0.0


class Trial:
    """A copy with one mutant, and the time that its tests have; `slow` is how many times as long as usual."""

    def __init__(self, base: Path, place: Path, mutant: Mutant, slow: float = 1) -> None:
        self._copy = copies.again(base, place)
        self._slow = slow
        self._began = time.monotonic()
        file = self._copy / mutant.file
        file.write_text(mutant.planted(file.read_text()))

    def run(self, tests: Sequence[Test], of: int) -> Outcome:
        """Run these tests, of so many that execute the line of the mutant; the copy is gone then."""
        try:
            verdict, failure = self._judged([test.name for test in tests])
        finally:
            shutil.rmtree(self._copy, ignore_errors=True)
        seconds = round(time.monotonic() - self._began, 1)
        return Outcome(verdict, failure.get("test", ""), failure.get("said", ""), len(tests), of, seconds)

    def _left(self, limit: timedelta) -> float:
        return self._slow * limit.total_seconds() - (time.monotonic() - self._began)

    def _judged(self, names: Sequence[str]) -> tuple[Verdict, dict[str, str]]:
        """Run tests until one fails twice: what fails once, on a busy machine, may be an accident."""
        while names:
            ended, failure = self._run(names)
            if ended is None:
                return Verdict.OUT_OF_TIME, {}
            if not failure:
                return Verdict.SURVIVED, {}
            if failure["test"] not in names:  # a module that can't be imported, or a process that has ended
                return Verdict.CAUGHT, failure
            ended, again = self._run([failure["test"]])
            if ended is None:
                return Verdict.OUT_OF_TIME, {}
            if again:
                return Verdict.CAUGHT, failure
            names = names[names.index(failure["test"]) + 1 :]
        return Verdict.SURVIVED, {}

    def _run(self, names: Sequence[str]) -> tuple[int | None, dict[str, str]]:
        """Run tests until one fails; return pytest's status, None if it had to be ended, and which failed how."""
        chosen, failed = self._copy.with_suffix(".chosen"), self._copy.with_suffix(".failed")
        chosen.write_text("\n".join(names))
        failed.unlink(missing_ok=True)
        command = [str(self._copy / ".venv/bin/python"), "-m", "pytest", "-q", "-x", *_PLUGINS]
        command += [f"--mutants-chosen={chosen}", f"--mutants-failed={failed}"]
        command += [f"--mutants-seconds={self._left(NO_FURTHER)}"]
        command += dict.fromkeys(name.partition("::")[0] for name in names)
        ended = _ended(self._copy, command, self._left(TIME_LIMIT) - _TO_END)
        if failed.exists() and ended is not None:  # else it may have failed for being ended
            failure: dict[str, str] = json.loads(failed.read_text())
            return ended, failure
        if ended in {0, None, _INTERRUPTED}:
            return ended, {}
        return ended, {"test": "the process of the tests", "said": f"pytest ended with status {ended}"}


def _ended(copy: Path, command: Sequence[str], seconds: float) -> int | None:
    """Run a command for so long; return its exit status, or None if it had to be ended. What it started is ended."""
    environ = os.environ | {_MARK: str(copy)}
    with copy.with_suffix(".log").open("a") as log:
        process = subprocess.Popen(
            command, cwd=copy, env=environ, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        status = None
        try:
            status = process.wait(max(seconds, 1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_TO_END)
        finally:
            _end_all(environ)
            process.wait()
    return status


def _end_all(environ: Mapping[str, str]) -> None:
    """End what a trial has left behind: each process that has its mark."""
    mark = os.fsencode(f"{_MARK}={environ[_MARK]}")
    for pid in _processes():
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[int]:
    return (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
