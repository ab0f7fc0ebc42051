"""What never came comes once, though the process that asks for it is killed again and again."""

import json
import random
import subprocess
import sys
import time
import uuid
from datetime import timedelta
from pathlib import Path

import pytest

from tests.sender_api.test_reconciling import GITHUB, KEYS, STRIPE, body_of, event
from tests.support.asking import FastClock
from tests.support.fake_senders import GitHub, Stripe
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SPEED = 600
SECONDS = 90


def ask(world, begin):
    told = {
        "environ": world.environ,
        "ports": {server.host: server.port for server in world.servers},
        "begin": begin,
        "now": world.began.timestamp(),
        "speed": SPEED,
    }
    command = [sys.executable, "-m", "tests.support.asking", json.dumps(told)]
    return subprocess.Popen(command, cwd=ROOT)


def kill_until(world, begin, is_over):
    """Have one process after another ask, each killed at some request, until all has come; return how many."""
    chance, killed = random.Random(1), 0  # noqa: S311  no secret
    [server] = world.servers
    while not is_over():
        at = len(server.requests) + chance.randint(1, 40)
        process = ask(world, begin)
        until(
            lambda at=at: len(server.requests) >= at or is_over(),
            seconds=SECONDS,
            what="the next request",
            process=process,
        )
        process.kill()
        process.wait()
        killed += 1
    return killed


@pytest.mark.parametrize(
    ("number", "lacking", "late"), [(250, 30, 5), pytest.param(5000, 300, 50, marks=pytest.mark.long)]
)
def test_exactly_what_is_missing_comes_under_kills(world, number, lacking, late):
    begin = time.time()
    world.began = world.clock()
    clock = FastClock(begin, world.began.timestamp(), SPEED)
    world.serve(github := GitHub(clock, lag=timedelta(minutes=1)))
    world.configure(GITHUB, **KEYS)
    github.door = lambda guid: world.deliver("github", body_of(guid), guid, "issues")
    guids = [str(uuid.UUID(int=n + 1)) for n in range(number)]
    failing = set(random.Random(2).sample(guids, lacking + late))  # noqa: S311
    for n, guid in enumerate(guids):
        status = 502 if guid in failing else world.deliver("github", body_of(guid), guid, "issues")
        github.add(guid, world.began - timedelta(hours=10) + n * timedelta(seconds=5), status=status)
    came_late = sorted(failing)[:late]
    before = world.ids()

    process_late = iter(came_late)

    def is_over():
        if (guid := next(process_late, None)) is not None:
            world.deliver("github", body_of(guid), guid, "issues")
        listed = world.rows("SELECT sum(listed) FROM hookonce.listed_days") == [(number,)]
        return listed and world.ids() == set(guids) and not world.missing()

    killed = kill_until(world, begin, is_over)

    assert killed > 1
    assert before == set(guids) - failing
    assert world.rows("SELECT count(*) FROM hookonce.events") == [(number,)]
    assert set(github.redelivered) <= failing
    assert max(github.redelivered.count(guid) for guid in failing) <= 2
    assert world.rows("SELECT count(*) FROM hookonce.conflicts") == [(0,)]


def test_listed_events_are_taken_in_once_under_kills(world):
    begin = time.time()
    world.began = world.clock()
    world.serve(stripe := Stripe(FastClock(begin, world.began.timestamp(), SPEED)))
    world.configure(STRIPE, **KEYS)
    for n in range(250):
        stripe.add(event(n, world.began - timedelta(hours=10) + n * timedelta(seconds=5)))

    def is_over():
        return len(world.ids()) == 250 and world.rows("SELECT sum(listed) FROM hookonce.listed_days") == [
            (250,)
        ]

    killed = kill_until(world, begin, is_over)

    assert killed >= 1
    assert world.rows("SELECT count(*) FROM hookonce.events WHERE origin = 'reconciled'") == [(250,)]
    assert world.rows("SELECT count(*) FROM hookonce.queue WHERE waits IS NULL") == [(250,)]
