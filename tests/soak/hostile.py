"""`python -m tests.soak.hostile`: a storm of hostile handlers over real workers, until the queue is drained.

STORM_EVENTS (2000), STORM_WORKERS (2), STORM_CONCURRENCY (8), STORM_SEED and STORM_SECONDS (200) may be set. Exit
status 1 if an effect came twice, an event was lost, an innocent run was charged or is dead, or the queue was not
drained.
"""

import contextlib
import os
import random
import secrets
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from hookonce.receiver.dev.embedded import servers
from hookonce.receiver.ledger.database import connections, migrate
from hookonce.receiver.ledger.store import store
from tests.soak.__main__ import say
from tests.support.event_sums import differences
from tests.support.new_event import new_event
from tests.support.stories.lab import RESTLESS
from tests.support.stories.stack import Stack, running

HANDLERS = "tests.soak.hostile_handlers"
HOSTILE = {
    "exits": 15,
    "is.killed": 15,
    "commits": 20,
    "commits.and.dies": 10,
    "hangs": 10,
    "refuses.to.end": 4,
    "leaves.a.thread": 100,
}
"""Of two thousand events; the others are innocent."""
_OF = 2000
_LOOK = 0.25
_AT_A_TIME = 500
ENDINGS = """
SELECT e.type, e.event_id, r.status, r.attempts FROM hookonce.run_states r JOIN hookonce.events e ON e.id = r.event
"""
EFFECTS = "SELECT handler, event_id, count(*) FROM effects GROUP BY 1, 2"


def main():
    seed = int(os.environ.get("STORM_SEED") or secrets.randbelow(10**9))
    events = int(os.environ.get("STORM_EVENTS") or 2000)
    workers = int(os.environ.get("STORM_WORKERS") or 2)
    concurrency = int(os.environ.get("STORM_CONCURRENCY") or 8)
    seconds = float(os.environ.get("STORM_SECONDS") or 200)
    say(f"{events} events, {workers} workers of {concurrency} slots, STORM_SEED={seed}")
    with contextlib.ExitStack() as cleaning:
        place = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="hostile-")))
        place.chmod(0o711)
        found = cleaning.enter_context(servers(place / "servers", durable=False))
        migrate.upgrade(found.database_url)
        stack = Stack(place, found.database_url, found.redis_url, web=0, workers=workers, handlers=HANDLERS)
        stack.environ["HOOKONCE_CONCURRENCY"] = str(concurrency)
        stack.make_effects()
        expected = deliver(found.database_url, events, random.Random(seed))  # noqa: S311  to be repeated
        began = time.monotonic()
        with running(stack):
            longest, left = drained(stack, began + seconds)
        say(f"{time.monotonic() - began:.1f} s, {left} left; nothing ended for {longest:.1f} s at most")
        say(f"{deaths(stack)} deaths of workers and of those that run suspects")
        mistakes = [*judge(stack, expected), *[f"{left} events are left"] * bool(left)]
        if mistakes and (kept := os.environ.get("STORM_LOG")):
            Path(kept).write_text(stack.logged("worker"))
    for mistake in mistakes[:20]:
        say(f"FAILED: {mistake}")
    sys.exit(bool(mistakes))


def deliver(url, count, chance):
    """Store so many events in an order of chance; return the type of each."""
    types = [kind for kind, number in HOSTILE.items() for _ in range(number * count // _OF)]
    types += ["innocent"] * (count - len(types))
    chance.shuffle(types)
    news = [new_event(f"evt_{n}", type=kind) for n, kind in enumerate(types)]
    with connections.connect(url) as connection:
        for start in range(0, count, _AT_A_TIME):
            store(connection, news[start : start + _AT_A_TIME])
    return {f"evt_{n}": kind for n, kind in enumerate(types)}


def drained(stack, deadline):
    """Wait until all have ended, or it is late; return for how long (s) nothing ended at most, and what is left."""
    with psycopg.connect(stack.database_url, autocommit=True) as sql:
        before, at, longest = None, time.monotonic(), 0.0
        while True:
            (left,) = sql.execute(RESTLESS).fetchone()
            now = time.monotonic()
            longest = max(longest, now - at)
            if left != before:
                before, at = left, now
            if not left or now > deadline:
                return longest, left
            time.sleep(_LOOK)


def deaths(stack):
    lines = stack.logged("worker").splitlines()
    return sum("starts again" in line or "ended its process" in line for line in lines)


def judge(stack, expected):
    """Say what must not be: effects twice, or of what is dead; innocents without effect, dead or charged."""
    effects = {event: count for _, event, count in stack.query(EFFECTS)}
    yield from (f"{event} ({expected[event]}) has {n} effects" for event, n in effects.items() if n > 1)
    met = set()
    for kind, event, status, attempts in stack.query(ENDINGS):
        met.add(event)
        is_harmless = kind in {"innocent", "leaves.a.thread"}
        if status not in {"done", "dead"}:
            continue
        if is_harmless and (status, attempts) != ("done", 1):
            yield f"{event} ({kind}) is {status} after {attempts} attempts"
        if not is_harmless and status != "dead":
            yield f"{event} ({kind}) is {status}"
        if (event in effects) != is_harmless:
            yield f"{event} ({kind}) has {effects.get(event, 0)} effects"
    yield from (f"{event} ({expected[event]}) is lost" for event in expected.keys() - met)
    with psycopg.connect(stack.database_url, autocommit=True) as sql:
        for (source, status), (kept, counted) in differences(sql).items():
            yield f"the sum of {status} of {source} is {kept}, a full count gives {counted}"


if __name__ == "__main__":
    main()
