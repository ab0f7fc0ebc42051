"""Orders wait for their checks, which come in any order, while workers are killed and PostgreSQL is restarted."""

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

PARTS = 20
"""In so many parts events come, a part a beat."""
BEAT = 0.3
LATEST = 25.0
"""Seconds from the later of two events to the call that has both: some three on a quiet machine; a lease is thirty."""
LATE = """
SELECT coalesce(max(extract(epoch FROM f.at - greatest(o.received_at, c.received_at))), 0)::float
FROM fulfilled f JOIN hookonce.events o ON o.event_id = 'order ' || f.sha
                 JOIN hookonce.events c ON c.event_id = 'check ' || f.sha
"""


@pytest.fixture
def servers(tmp_path):
    postgres, valkey = Postgres.start(tmp_path), Valkey.start(tmp_path)
    migrate.upgrade(postgres.url)
    with connections.connect(postgres.url) as connection:
        connection.execute(
            "CREATE TABLE fulfilled (sha text, answer int, at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
    yield postgres, valkey
    valkey.stop()
    postgres.stop()


@pytest.fixture
def stack(servers, tmp_path):
    postgres, valkey = servers
    handlers = "tests.support.stories.wait_handlers"
    stack = Stack(tmp_path, postgres.url, valkey.url, web=0, workers=2, handlers=handlers)
    stack.environ |= {"HOOKONCE_CONCURRENCY": "4"}
    yield stack
    stack.close()


def both_sides(pairs):
    """An order and a check for each value, in random order."""
    events = []
    for sha in range(pairs):
        for kind, name in (("order", "order.created"), ("check", "check.completed")):
            said = {"id": f"{kind} {sha}", "type": name, "data": {"object": {"sha": str(sha), "answer": sha}}}
            events.append(new_event(said["id"], json.dumps(said).encode(), type=name))
    random.Random(7).shuffle(events)  # noqa: S311  to be repeated
    return events


def kill_on(stack, enough):
    """Kill a worker, or what it has forked, now and then."""
    dice = random.Random(7)  # noqa: S311  to be repeated
    while not enough.wait(1.5):
        workers = children(stack.processes["worker"].pid)
        if pids := [pid for each in workers for pid in (each, *children(each))]:
            with suppress(ProcessLookupError):
                os.kill(dice.choice(pids), signal.SIGKILL)


@pytest.mark.parametrize("pairs", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_each_order_gets_its_check_whatever_dies_and_comes_when(servers, stack, pairs):
    postgres, _ = servers
    events, enough = both_sides(pairs), threading.Event()
    stack.start()
    killer = threading.Thread(target=kill_on, args=[stack, enough])
    killer.start()

    try:
        for part in range(PARTS):
            if part == PARTS // 2:
                postgres.restart()
            with connections.connect(postgres.url) as connection:
                store(connection, events[part::PARTS])
            enough.wait(BEAT)
    finally:
        enough.set()
        killer.join()

    def ask(statement):
        with psycopg.connect(postgres.url) as connection:
            return connection.execute(statement).fetchone()[0]

    until(lambda: ask("SELECT count(*) FROM hookonce.queue"), 0, seconds=120, away=(psycopg.Error,))
    assert ask("SELECT count(*) FROM hookonce.runs WHERE status <> 'done'") == 0
    assert ask("SELECT count(DISTINCT sha) FROM fulfilled WHERE answer::text = sha") == pairs
    assert ask("SELECT count(*) FROM fulfilled") == pairs
    late = ask(LATE)
    print(f"the latest came {late:.1f} s after the later of its events")  # noqa: T201  shown if it fails
    assert late <= LATEST
