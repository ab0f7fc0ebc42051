"""A process that forks others, which are to die at a place of their work; run as `python -m tests.support.dying`.

It has a program of its own: what pytest's process has begun, a forked child of it could not go on with.
"""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from hookonce.receiver import failpoints

ROOT = Path(__file__).parents[2]


class Dying:
    """Calls `work` of a module in processes that die at the place number so-and-so, or else when it returns."""

    def __init__(self, module, *arguments, log):
        command = [sys.executable, "-m", "tests.support.dying", module, str(log), *map(str, arguments)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def at(self, place):
        """Have it work, and die there."""
        self._process.stdin.write(f"{place}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "died\n"

    def close(self):
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


def _serve(module, log, *arguments):
    work = import_module(module).work
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                failpoints.arm(int(line), log)
                work(*arguments)
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        sys.stdout.write("died\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
