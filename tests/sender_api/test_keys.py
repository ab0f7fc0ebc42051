"""Which processes have the key of a sender's API."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SECONDS = 60
KEY = "github_pat_11THE_KEY"
CONFIGURATION = """
[receiver]
handlers = ["handlers"]

[sources.github]
secrets = ["env:GITHUB_SECRET"]
api_key = "env:GITHUB_TOKEN"
api = "https://api.github.com/repos/octocat/Hello-World/hooks/12345678"
"""
HANDLERS = """
import gc, os, pathlib
pathlib.Path(f"seen-{os.getpid()}").write_bytes(
    pathlib.Path("/proc/self/environ").read_bytes() + repr(dict(os.environ)).encode()
)
"""


@pytest.fixture
def place(database_url, redis_url, tmp_path):
    (tmp_path / "handlers.py").write_text(HANDLERS)
    (tmp_path / "hookonce.toml").write_text(CONFIGURATION)
    urls = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
    return tmp_path, {**os.environ, **urls, "GITHUB_SECRET": "s", "PYTHONPATH": str(ROOT)}


def holds_key(pid):
    """Whether the key is in a process's memory: heap, stack, and the environment that it began with."""
    with (
        contextlib.suppress(FileNotFoundError, ProcessLookupError),
        Path(f"/proc/{pid}/mem").open("rb", 0) as memory,
    ):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            ends, rights, *_ = line.split()
            start, end = (int(each, 16) for each in ends.split("-"))
            if rights.startswith("rw"):
                memory.seek(start)
                with contextlib.suppress(OSError):
                    if KEY.encode() in memory.read(end - start):
                        return True
    return False


def children_of(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], marks=pytest.mark.long),
        ["--concurrency", "4"],
        pytest.param(["--reloading"], marks=pytest.mark.long),
    ],
)
def test_key_is_in_the_sweep_and_in_no_other_process(place, options):
    path, environ = place
    command = [sys.executable, "-m", "hookonce.receiver.cli", "worker", *options]
    worker = subprocess.Popen(command, cwd=path, env={**environ, "GITHUB_TOKEN": KEY})
    try:
        until(
            lambda: len(children_of(worker.pid)) >= 2 and list(path.glob("seen-*")),
            seconds=SECONDS,
            process=worker,
        )

        until(lambda: any(map(holds_key, children_of(worker.pid))), seconds=SECONDS, process=worker)
        holders = [pid for pid in (worker.pid, *children_of(worker.pid)) if holds_key(pid)]
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(SECONDS)

    assert len(holders) == 1
    assert holders != [worker.pid]
    assert all(KEY.encode() not in each.read_bytes() for each in path.glob("seen-*"))


def test_key_in_dotenv_is_in_no_environment_of_handlers(place):
    path, environ = place
    (path / ".env").write_text(f"GITHUB_TOKEN={KEY}\n")
    worker = subprocess.Popen(
        [sys.executable, "-m", "hookonce.receiver.cli", "worker"], cwd=path, env=environ
    )
    try:
        seen = until(
            lambda: len(found := list(path.glob("seen-*"))) >= 2 and found, seconds=SECONDS, process=worker
        )
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(SECONDS)

    assert all(KEY.encode() not in each.read_bytes() for each in seen)
