"""A process that dies at each failpoint of an operation, on each store; and the two failures that leave it alive.

Six points: before the claim, after it, after the effect, after the result was stored, after the answer was made, and
replies that are lost (`survives_replies_that_are_lost`, `does_nothing_without_its_server` in the suite of all stores).
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookonce.receiver.failpoints import OF_OPERATIONS
from tests.support.idempotency.places import CREDENTIALS, OnPostgres

ROOT = Path(__file__).parents[2]
IN_PROGRESS = ("operation.claimed", "operation.done")
"""Died with the claim: until its lease runs out nobody else may."""


def told(place, directory, how):
    """What became of a request whose process died, at each point in turn."""
    command = [sys.executable, "-m", "tests.support.idempotency.cut", place.spec, str(directory), how]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    stories = [json.loads(line) for line in done.stdout.splitlines()]
    assert stories[-1]["survived"]
    assert {point for story in stories for point in story["met"]} == set(OF_OPERATIONS)
    assert [story["met"][-1] for story in stories[:-1]] == list(OF_OPERATIONS)
    return stories


def check_answers(stories):
    """Nobody was let in beside a claim that held, and all later answers are one."""
    for story in stories[:-1]:
        point = story["met"][-1]
        status, _, is_replayed = story["busy"]
        assert (status == 202) == (point in IN_PROGRESS), story
        assert is_replayed == (point in {"operation.completed", "operation.answered"}), story
        (one, body, _), (two, again, is_replayed) = story["later"]
        assert (one, two, body, is_replayed) == (200, 200, again, True), story


@pytest.mark.usefixtures("credentials")
def test_effect_happens_once_if_the_other_side_is_asked(place, tmp_path):
    stories = told(place, tmp_path, "recover")

    check_answers(stories)
    assert [len(story["effects"]) for story in stories] == [1] * len(stories)


@pytest.mark.usefixtures("credentials")
def test_effect_outside_is_repeated_under_its_key_where_nobody_asks(place, tmp_path):
    stories = told(place, tmp_path, "repeat")

    check_answers(stories)
    for story in stories:
        assert len(set(story["effects"])) == 1
        assert len(story["effects"]) == (2 if story["met"][-1] == "operation.done" else 1)


def test_effect_in_the_transaction_of_the_answer_happens_once(database_url, tmp_path):
    place = OnPostgres(database_url)

    stories = told(place, tmp_path, "transaction")

    for story in stories:
        assert len(story["effects"]) == 1, story
        assert story["later"][1][2], story


@pytest.fixture
def credentials(monkeypatch):
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
