"""The newest of each object wins: in order with faults, with equal versions, and shuffled under kills and restarts."""

import json
import os
import random
import signal
import threading
from contextlib import suppress

import psycopg
import pytest

from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.dev.embedded.process import children
from hookonce.receiver.ledger.database import connections, migrate
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.stories.stack import Stack
from tests.support.waiting import until

TABLES = """
CREATE TABLE states (handler text, id text, version int, PRIMARY KEY (handler, id));
CREATE TABLE applied (n bigserial, handler text, id text, version int);
"""
FELL = """
SELECT count(*) FROM (
    SELECT version, lag(version) OVER (PARTITION BY id ORDER BY n) AS before FROM applied WHERE handler = 'newest') AS x
WHERE version < before
"""
STALE = "SELECT count(*) FROM states WHERE handler = %s AND version < %s"


def states(entities, versions, *, version_of=lambda n: n):
    """Each state of each entity, all first states first; `n` counts, `version` is what the sender says."""
    for n in range(1, versions + 1):
        for entity in range(entities):
            state = {"id": f"e{entity}", "n": n, "version": version_of(n)}
            event = {"id": f"evt_{entity}_{n}", "type": "invoice.paid", "data": {"object": state}}
            yield new_event(event["id"], json.dumps(event).encode(), type=event["type"])


@pytest.fixture
def servers(tmp_path):
    postgres, valkey = Postgres.start(tmp_path), Valkey.start(tmp_path)
    migrate.upgrade(postgres.url)
    yield postgres, valkey
    valkey.stop()
    postgres.stop()


@pytest.fixture
def stack_of(servers, tmp_path):
    made = []

    def stack_of(workers, slots, faults=0.0):
        postgres, valkey = servers
        place = tmp_path / f"stack{len(made)}"
        place.mkdir()
        stack = Stack(
            place,
            postgres.url,
            valkey.url,
            web=0,
            workers=workers,
            handlers="tests.support.stories.order_handlers",
        )
        stack.environ |= {"HOOKONCE_CONCURRENCY": str(slots), "STORY_FAULTS": str(faults)}
        made.append(stack)
        return stack

    yield stack_of
    for stack in made:
        stack.close()


def begin(postgres, events):
    with connections.connect(postgres.url) as connection:
        connection.execute("DROP TABLE IF EXISTS states, applied")
        connection.execute("TRUNCATE hookonce.entities")
        for statement in TABLES.strip().splitlines():
            connection.execute(statement.encode())
        for first in range(0, len(events), 200):
            store(connection, events[first : first + 200])


def ask(postgres, statement, values=()):
    with psycopg.connect(postgres.url) as connection:
        return connection.execute(statement, values).fetchone()[0]


def wait_for_all(postgres, seconds):
    def left():
        return ask(postgres, "SELECT count(*) FROM hookonce.queue")

    until(left, 0, seconds=seconds, away=(psycopg.Error,), what="the last run")


def verdict(postgres, versions):
    found = {
        "stale": ask(postgres, STALE, ["newest", versions]),
        "fell": ask(postgres, FELL),
        "missing": ask(postgres, "SELECT count(*) FROM hookonce.runs WHERE status <> 'done'"),
    }
    assert ask(postgres, "SELECT count(*) FROM applied WHERE handler = 'newest'")
    everyday = ask(postgres, STALE, ["everyday", versions])
    print(f"{found}; without stale= {everyday} are stale")  # noqa: T201  shown if it fails
    return found


RIGHT = {"stale": 0, "fell": 0, "missing": 0}


@pytest.mark.parametrize("version_of", [lambda n: n, lambda _: 7], ids=["in order", "equal versions"])
def test_none_of_a_hundred_ends_stale_in_order_with_faults(servers, stack_of, version_of):
    postgres, _ = servers
    found = []

    for _ in range(int(os.environ.get("STORY_RUNS") or 3)):
        begin(postgres, [])
        with connections.connect(postgres.url) as connection:
            connection.execute("TRUNCATE hookonce.events CASCADE")
        begin(postgres, list(states(100, 5, version_of=version_of)))
        stack = stack_of(1, 8, faults=0.05).start()
        wait_for_all(postgres, 120)
        stack.close()
        found.append(verdict(postgres, 5))

    assert found == [RIGHT] * len(found)


def test_versions_rise_under_kills_and_restarts_whatever_comes_when(servers, stack_of):
    postgres, _ = servers
    dice = random.Random(7)  # noqa: S311  to be repeated
    events = list(states(500, 20))
    dice.shuffle(events)
    late, events = events[:500], events[500:] + dice.sample(events, 1000)
    begin(postgres, events)
    stack = stack_of(3, 16, faults=0.02).start()
    enough = threading.Event()
    kills = []

    def kill_on():
        while not enough.wait(2):
            pids = [
                pid for each in children(stack.processes["worker"].pid) for pid in (each, *children(each))
            ]
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(pids), signal.SIGKILL)
                    kills.append(1)

    killer = threading.Thread(target=kill_on)
    killer.start()
    try:
        for _ in range(2):
            enough.wait(8)
            postgres.restart()
        with connections.connect(postgres.url) as connection:
            store(connection, late)
        until(
            lambda: ask(postgres, "SELECT count(*) FROM hookonce.queue") < 500,
            seconds=300,
            away=(psycopg.Error,),
        )
    finally:
        enough.set()
        killer.join()
    wait_for_all(postgres, 300)

    print(f"{len(kills)} kills")  # noqa: T201  shown if it fails
    assert verdict(postgres, 20) == RIGHT
