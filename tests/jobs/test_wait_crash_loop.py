"""A worker that dies at each failpoint in turn of wait, arrival and timeout, in every order: no wake is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookonce.receiver.failpoints import OF_WAITS
from tests.support.cut_waits import ORDERS

ROOT = Path(__file__).parents[2]
ANSWERS = {"the time is over": {"None"}, "the check comes as the time is over": {"7", "None"}}


@pytest.mark.parametrize("order", ORDERS)
def test_order_gets_its_check_wherever_a_worker_dies(order, database_url, redis_url, tmp_path):
    command = [sys.executable, "-m", "tests.support.cut_waits", database_url, redis_url, str(tmp_path), order]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]

    for story in told:
        assert (len(story["effects"]), story["statuses"], story["left"]) == (1, ["done"], 0), story
        assert set(story["effects"]) <= ANSWERS.get(order, {"7"}), story
    died_at = {story["met"][-1] for story in told if not story["survived"]}
    assert died_at >= ({*OF_WAITS} if "check" in ORDERS[order] else {"wait.declared"})
    assert sum(story["survived"] for story in told) == ORDERS[order].count("work")
