"""A receiver, and a worker, that dies at each step of a command: in the end one effect, and one answer for ever."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = {
    "receiver": {"window.claimed", "ledger.committed", "window.settled", "delivery.answered"},
    "worker": {
        "run.leased",
        "run.claimed",
        "handler.entered",
        "handler.returned",
        "run.ended",
        "run.committed",
    },
}


@pytest.mark.parametrize("role", STEPS)
def test_command_is_done_once_wherever_a_process_dies(role, database_url, redis_url, tmp_path):
    command = [
        sys.executable,
        "-m",
        "tests.support.cut_commands",
        role,
        database_url,
        redis_url,
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr

    stories = [json.loads(line) for line in done.stdout.splitlines()]

    assert stories[-1]["survived"]
    assert {point for story in stories for point in story["met"]} >= STEPS[role]
    for story in stories:
        (status, body, _), (again, same, is_replayed) = story["answers"]
        assert (status, again, is_replayed, story["effects"]) == (200, 200, True, 1), story
        assert body == same
        assert json.loads(body)["paid"] == 5
