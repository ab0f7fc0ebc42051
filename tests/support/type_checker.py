"""mypy --strict on modules of a user's, as an editor would run it beside an installed hookonce.

The cache is shared by all tests, since most of a run's eight seconds go into what hookonce itself imports: the first
run fills it, and the others wait for that.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".pytest_cache" / "strict types"
OURS = ("HOOKONCE_", "DATABASE_URL", "REDIS_URL", "MYPY")


def mypy(folder, *files):
    """Return mypy's exit code, and the lines that it prints but for the summary."""
    CACHE.mkdir(parents=True, exist_ok=True)
    options = ["--strict", "--config-file=", "--cache-dir", CACHE, "--no-error-summary"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, *files],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.returncode, (done.stdout + done.stderr).splitlines()
