"""A handler that kills its process, among others that do nothing wrong: `hookonce worker`, as users run it."""

import os
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest

from hookonce.jobs.claimer import WORKER_ENDED
from tests.support.waiting import until
from tests.support.warm_python import WarmPython

ROOT = Path(__file__).parents[3]
SECONDS = 60
HANDLERS = """
import os, signal, time
from sqlalchemy import text
from hookonce import on

@on("stripe", "poison", attempts=2, timeout=60)
def poison(event, tx):
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)

@on("stripe", "innocent", attempts=1, timeout=60)
def innocent(event, tx):
    time.sleep(1)
    tx.execute(text("INSERT INTO effects VALUES (:event)"), {"event": event.event_id})

@on("stripe", "long", attempts=1, timeout=60)
def long(event, tx):
    time.sleep(50)
"""
PAUSES_PASS = (
    "UPDATE hookonce.queue SET due_at = now() WHERE waits = 'suspect' AND token IS NULL AND due_at > now()"
)
RUNS = """
SELECT e.type, r.status, r.attempts FROM hookonce.run_states r JOIN hookonce.event_states e ON e.id = r.event
ORDER BY e.type, r.event
"""


@pytest.fixture(scope="module")
def warm():
    made = WarmPython("hookonce.receiver.cli", "hookonce.jobs.cli", "sqlalchemy.dialects.postgresql.psycopg")
    yield made
    made.close()


@pytest.fixture
def worker(warm, database_url, redis_url, tmp_path):
    """A function that starts a worker of four slots; all are stopped in the end."""
    (tmp_path / "handlers.py").write_text(HANDLERS)
    started = []

    def start():
        environ = os.environ | {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_HANDLERS": "handlers",
            "HOOKONCE_CONFIG": "/dev/null",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        }
        command = ["-m", "hookonce.receiver.cli", "worker", "--concurrency", "4"]
        with (tmp_path / "log").open("ab") as log:
            started.append(warm.start(command, cwd=tmp_path, env=environ, output=log))
        return started[-1]

    yield start
    for process in started:
        process.terminate()
        process.wait(SECONDS)


def test_process_that_dies_charges_nobody_but_whoever_kills_it_alone(inbox, worker):
    inbox.deliver("p", type="poison")
    inbox.deliver("a", "b", type="innocent")
    worker()

    def ends():
        inbox.connection.execute(PAUSES_PASS)
        return inbox.rows(RUNS)

    expected = [("innocent", "done", 1), ("innocent", "done", 1), ("poison", "dead", 2)]
    until(ends, expected, seconds=SECONDS, away=psycopg.errors.LockNotAvailable)

    assert sorted(inbox.effects()) == ["a", "b"]
    assert inbox.rows("SELECT attempt, error FROM hookonce.failures ORDER BY attempt") == [
        (1, f"{WORKER_ENDED}: SIGKILL"),
        (2, f"{WORKER_ENDED}: SIGKILL"),
    ]


def test_worker_of_many_slots_stops_when_it_is_told_to(inbox, worker, database_url):
    inbox.deliver("a", type="innocent")
    process = worker()
    until(lambda: inbox.rows("SELECT 1 FROM hookonce.run_states WHERE status = 'running'"), seconds=SECONDS)

    process.terminate()

    assert process.wait(SECONDS) == 0
    assert inbox.runs() == [("a", "handlers.innocent", "done", 1)]
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM hookonce.worker_slots").fetchone() == (0,)


@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_again_gives_back_what_is_under_way_and_sigterm_again_does_not(inbox, worker, tmp_path, again):
    inbox.deliver("a", "b", type="long")
    process = worker()
    until(
        lambda: inbox.rows("SELECT 1 FROM hookonce.run_states WHERE status = 'running'")[1:], seconds=SECONDS
    )
    log = tmp_path / "log"

    process.terminate()
    until(lambda: "waiting up to 20 s for 2 to end" in log.read_text())
    process.send_signal(again)
    hurries = again == signal.SIGINT
    with nullcontext() if hurries else pytest.raises(subprocess.TimeoutExpired):
        assert process.wait(SECONDS if hurries else 2) == 0
    if not hurries:
        process.send_signal(signal.SIGINT)

    assert process.wait(SECONDS) == 0
    assert {row[2:] for row in inbox.runs()} == {("waiting", 0)}
