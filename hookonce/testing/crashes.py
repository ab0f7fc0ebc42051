"""Crashes at will: a receiver or worker that the kernel kills at a chosen place, as a power cut would."""

import faulthandler
import os
import pickle
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

from hookonce.receiver import failpoints
from hookonce.receiver.processes import spawn

__tracebackhide__ = True  # a test that fails shows the user's lines

_Result = TypeVar("_Result")


class Crashed(BaseException):
    """The death of what was done in the block of `crash_at`."""


@dataclass
class Crash:
    """A place to die: the name of a failpoint, reached for the n-th time."""

    at: str
    nth: int = 1
    reached: tuple[str, ...] = ()

    def run(self, act: Callable[[], _Result], close: Callable[[], None]) -> _Result:
        """Do something in a process that dies at the failpoint; return what it returns if it never reached that.

        `close` closes what it has opened, if it lives. Raises: `Crashed`; AssertionError if it has ended otherwise.
        """
        with tempfile.TemporaryDirectory(prefix="hookonce-") as directory:
            log, result = Path(directory, "reached"), Path(directory, "result")
            faulthandler.cancel_dump_traceback_later()  # the child would wait for its thread, which it does not have
            parent = os.getpid()
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # pytest-xdist has a thread; it does nothing here
                child = os.fork()
            if child == 0:
                spawn.end_with_parent(parent, signal.SIGKILL)
                self._be_child(act, close, log, result)
            _, status = os.waitpid(child, 0)
            reached = tuple(log.read_text().split()) if log.exists() else ()
            self.reached += reached
            self.nth -= reached.count(self.at)
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGKILL:
                raise Crashed(self.at)
            if code:
                raise AssertionError(
                    f"the process that should have died at {self.at!r} failed; see its traceback"
                )
            made: _Result = pickle.loads(result.read_bytes())  # noqa: S301  our own child wrote it
            return made

    def _be_child(
        self, act: Callable[[], object], close: Callable[[], None], log: Path, result: Path
    ) -> NoReturn:
        code = 1
        try:
            failpoints.arm_at(self.at, str(log), self.nth)
            result.write_bytes(pickle.dumps(act()))
            close()
            code = 0
        except BaseException:  # noqa: BLE001  the last that can tell
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


class CanCrash(Protocol):
    """An inbox."""

    def crashing(self, crash: Crash) -> AbstractContextManager[None]:
        """Have what is done within the block die where `crash` says."""


@contextmanager
def crash_at(inbox: CanCrash, failpoint: str, *, nth: int = 1) -> Iterator[None]:
    """Kill the receiver or worker within the block when it reaches a failpoint; what it had committed stays.

    `hookonce.receiver.failpoints.POINTS` lists them. The block ends where the process does: put what is to be killed
    last into it. Raises: LookupError for no such failpoint, AssertionError if it was never reached.
    """
    if failpoint not in failpoints.POINTS:
        raise LookupError(f"no failpoint is called {failpoint!r}; there are {', '.join(failpoints.POINTS)}")
    crash = Crash(failpoint, nth)
    try:
        with inbox.crashing(crash):
            yield
    except Crashed:
        return
    raise AssertionError(
        f"{failpoint!r} was not reached {nth} times; reached were {', '.join(crash.reached) or 'none'}"
    )
