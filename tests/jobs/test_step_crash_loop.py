"""A worker that dies at each failpoint of a handler with two steps, and what it did to the other side in the end.

Six points of a step: before its claim, after it, after the effect, after the result, after the handler; and replies
that are lost (tests/jobs/test_step_failures.py).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookonce.receiver.failpoints import OF_OPERATIONS

ROOT = Path(__file__).parents[2]
OF_STEPS = [*OF_OPERATIONS[:-1]] * 2
IN_THE_MIDST = ("operation.claimed", "operation.done")


def stories(how, database_url, redis_url, directory):
    command = [sys.executable, "-m", "tests.support.cut_steps", database_url, redis_url, str(directory), how]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told[-1]["survived"]
    met = [point for point in told[-1]["met"] if point.startswith("operation.")]
    assert met == OF_STEPS
    assert [story["met"][-1] for story in told[:-1]] == told[-1]["met"][: len(told) - 1]
    return told


@pytest.mark.parametrize("how", ["retry", "recover", pytest.param("async", marks=pytest.mark.long), "stop"])
def test_effect_of_a_step_has_one_key_wherever_the_worker_dies(how, database_url, redis_url, tmp_path):
    for story in stories(how, database_url, redis_url, tmp_path):
        names = [name for _, name, _ in story["effects"]]
        keys = {(name, key) for _, name, key in story["effects"]}
        died_at = None if story["survived"] else story["met"][-1]

        assert (story["status"], story["paid"]) == ("done", 1), story
        assert len(keys) == 2, "an effect has two keys, or none"
        assert {step["did"]: step["key"] for step in story["result"]} == dict(keys)
        assert len(names) == (3 if how == "retry" and died_at == "operation.done" else 2), story
        is_unknown = how == "stop" and died_at in IN_THE_MIDST
        assert (story["first"], len(story["stopped"])) == (("dead", 1) if is_unknown else ("done", 0)), story
