"""A `hookonce dev` under test, in a folder of its own."""

import contextlib
import os
import re
import select
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from hookonce.providers.kit.registry import load
from hookonce.receiver.dev.embedded.process import children
from hookonce.receiver.dev.stack import free_port, session
from hookonce.receiver.samples import documents
from tests.support.waiting import DeadlineMissed

HOOKONCE = [sys.executable, "-m", "hookonce.receiver.cli"]
ROOT = Path(__file__).parents[2]
SECONDS = 60


class Dev:
    """A `hookonce dev` under test; what it prints is read as it comes."""

    def __init__(self, place, **environ):
        self.place = place
        self.port = free_port()
        self.output = ""
        self.process = subprocess.Popen(
            [*HOOKONCE, "dev", "--port", str(self.port)],
            cwd=place,
            env=clean(**environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def until(self, pattern):
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.output, re.MULTILINE)):
            readable, _, _ = select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))
            if not readable:
                raise DeadlineMissed(f"{pattern} did not come; so far: {self.output}")
            assert self.read(), f"{pattern} did not come before the end; so far: {self.output}"
        return found

    def read(self):
        """Read some of what it has printed, or wait for that: it stands still once the pipe is full."""
        chunk = os.read(self.process.stdout.fileno(), 65536).decode()
        self.output += chunk
        return chunk

    def secret(self, source):
        return self.until(rf"^{source} .*/hooks/{source}\n *secret (\S+)$")[1]

    def post(self, event_id, secret, kind="invoice.paid"):
        now = datetime.now(UTC)
        url = f"http://127.0.0.1:{self.port}/hooks/stripe"
        sent = documents.fresh(load("stripe"), kind, now, event_id).delivery(secret, now, url)
        with session() as client:
            return client.post(url, data=sent.body, headers=dict(sent.headers))

    def run(self, *command):
        return hookonce(*command, place=self.place)

    def end(self):
        """Kill it; fail if anything that it has started outlives it."""
        pids = descendants(self.process.pid)
        self.process.kill()
        self.process.communicate()
        for pid in pids:
            await_end(pid)


def clean(**environ):
    ours = ("HOOKONCE_", "DATABASE_URL", "REDIS_URL", "GUNICORN", "WEB_CONCURRENCY")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return inherited | {"PYTHONPATH": str(ROOT)} | environ


def hookonce(*command, place, timeout=None, **environ):
    return subprocess.run(
        [*HOOKONCE, *command],
        cwd=place,
        env=clean(**environ),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def save(dev, name, text, at=None):
    """Write a file as an editor does, modified `at` these nanoseconds or now; forget what dev has said before."""
    dev.output = ""
    unfinished = dev.place / f"{name}.tmp"
    unfinished.write_text(text)
    if at is not None:
        os.utime(unfinished, ns=(at, at))
    unfinished.replace(dev.place / name)


def await_end(pid):
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            ended, _, _ = select.select([handle], [], [], SECONDS)
        finally:
            os.close(handle)
        assert ended, f"process {pid} outlives what has started it"


def descendants(pid):
    found = children(pid)
    return found + [each for child in found for each in descendants(child)]


@contextlib.contextmanager
def started(place, **environ):
    dev = Dev(place, **environ)
    try:
        dev.until("^ready: ")
        yield dev
    finally:
        dev.end()
