"""PostgreSQL's disk is full: senders are told to come again, and all goes on once there is room."""

import contextlib
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from hookonce.receiver.dev.embedded import Postgres
from hookonce.receiver.ledger.database import migrate
from tests.support.stories.stack import Stack, running, stay_away, until

SIZE = 128 * 1024**2
"""Bytes of the disk: a ledger and some segments of the log, of 16 MB each."""
HEAVY = "x" * 20_000
"""In each event, so that the room in half-empty pages is soon used up."""


@pytest.fixture
def small_disk():
    """A file system of its own, in memory: only root can make one."""
    if os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted by root")
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-"))
    options = f"size={SIZE},mode=0711"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], check=False)
    if mounted.returncode:
        directory.rmdir()
        pytest.skip("this system lets root mount nothing")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)
        directory.rmdir()


@pytest.fixture
def postgres(small_disk):
    server = Postgres.start(small_disk, durable=False)
    migrate.upgrade(server.url)
    yield server
    server.stop()


def test_senders_are_told_to_come_again_until_the_disk_has_room_again(
    postgres, small_disk, tmp_path, redis_url
):
    with running(Stack(tmp_path, postgres.url, redis_url, web=1, workers=1).make_effects()) as stack:
        stack.insist(stack.event())
        stack.rest()
        processes = stack.receivers + stack.workers
        began = time.monotonic()
        with stack.load(weight=HEAVY):
            with full(small_disk):
                until(lambda: stack.refused(began), what="a refusal")
                stay_away(began)
            if not postgres.alive:  # it could not even recover
                postgres.restart()
            until(lambda: stack.query("SELECT 1"), what="its return")
        stack.history.faults += len(processes)

        assert stack.violations() == []
        print(stack.figures(began))  # noqa: T201  for `make soak`
        assert {answer.status for answer in stack.since(began)} <= {200, 503}
        assert stack.receivers + stack.workers == processes


@contextlib.contextmanager
def full(disk):
    """Fill a file system to its last byte."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(64 * 1024)):
            pass
    try:
        yield
    finally:
        ballast.unlink()
