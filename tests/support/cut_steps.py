"""A worker that dies at each failpoint in turn of a handler with two steps, and the workers that come after it.

`python -m tests.support.cut_steps <database> <redis> <directory> <how>`: says one JSON line per failpoint. `how` is
what its steps do when nobody knows: `retry`, `recover` (the other side is asked), `stop` (a person decides); an
`async` handler recovers, too.
"""

import asyncio
import gc
import json
import sys
from datetime import timedelta
from pathlib import Path

import psycopg
from sqlalchemy import text

from hookonce import NEVER_HAPPENED
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import OFF
from hookonce.receiver.failpoints import arm
from hookonce.receiver.ledger import steps
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay import events as event_replays
from hookonce.receiver.ledger.store import store
from tests.support.children import in_child
from tests.support.new_event import new_event

LET_TIME_PASS = """
UPDATE hookonce.queue SET due_at = now();
UPDATE hookonce.claims SET lease_until = now()
"""
WORKERS = 5
STEPS = ("charge", "mail")


class OtherSide:
    """Somebody who does as asked each time, and can be asked whether it was."""

    def __init__(self, directory):
        self._file = Path(directory) / "effects"

    def effects(self):
        return (
            [tuple(line.split()) for line in self._file.read_text().splitlines()]
            if self._file.exists()
            else []
        )

    def do(self, event, name, key):
        with self._file.open("a") as file:
            file.write(f"{event} {name} {key}\n")
        return {"did": name, "key": key}

    def find(self, name, key):
        return {"did": name, "key": key} if any(key == one[2] for one in self.effects()) else NEVER_HAPPENED


class Story:
    def __init__(self, database_url, redis_url, directory, how):
        self._urls = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": "/dev/null"}
        self._how = how
        self._other = OtherSide(directory)
        self._log = Path(directory) / "points"

    def _options(self, name):
        asks = self._how in {"recover", "async"}
        return {
            "recover": (lambda key: self._other.find(name, key)) if asks else None,
            "on_unknown": "stop" if self._how == "stop" else "retry",
        }

    def _pay(self, event, tx):
        tx.execute(text("INSERT INTO public.paid VALUES (:event)"), {"event": event.event_id})
        return [
            event.step(
                name, lambda key, name=name: self._other.do(event.event_id, name, key), **self._options(name)
            )
            for name in STEPS
        ]

    async def _pay_async(self, event, tx):
        await tx.execute(text("INSERT INTO public.paid VALUES (:event)"), {"event": event.event_id})

        async def do(name, key):
            await asyncio.sleep(0)
            return self._other.do(event.event_id, name, key)

        return [
            await event.step(name, lambda key, name=name: do(name, key), **self._options(name))
            for name in STEPS
        ]

    def _work(self, fatal=None):
        settings = load_settings(self._urls)
        registry = Registry()
        function = self._pay_async if self._how == "async" else self._pay
        pause = (timedelta(0), timedelta(0))
        registry.add(Handler("pay", "stripe", "*", function, 9, pause, timedelta(seconds=30)))
        with connections.connect(settings.database_url) as connection:
            connection.execute(LET_TIME_PASS)
        if fatal is not None:
            arm(fatal, str(self._log))
        drain = SingleSlot(settings, registry)
        count = drain.run_due()
        drain.close()
        return count

    def told(self, fatal):
        """What became of an event whose worker died at this failpoint."""
        event_id = f"evt_{fatal}"
        self._log.write_text("")
        with psycopg.connect(libpq_url(self._urls["DATABASE_URL"]), autocommit=True) as connection:
            event = store(connection, [new_event(event_id)])["stripe", event_id].id
            survived, _ = in_child(lambda: self._work(fatal))
            in_child(self._work)  # at least one after it, and one when all is over
            for _ in range(WORKERS):
                first = self._status(connection, event)
                in_child(self._work)
                if first in {"done", "dead"}:
                    break
            assert self._status(connection, event) == first
            stopped = [step.name for step in steps.stopped(connection, OFF)]
            for name in stopped:
                self._decide(connection, event, event_id, name)
            for _ in stopped:
                list(event_replays.replay(connection, [event], "a person", again=True))
                in_child(self._work)
            status, result = connection.execute(
                "SELECT status, result FROM hookonce.run_states WHERE event = %s", [event]
            ).fetchone()
            paid = connection.execute(
                "SELECT count(*) FROM public.paid WHERE event = %s", [event_id]
            ).fetchone()[0]
        effects = [each for each in self._other.effects() if each[0] == event_id]
        return {
            "survived": survived,
            "met": self._log.read_text().split(),
            "first": first,
            "stopped": stopped,
            "status": status,
            "result": result,
            "paid": paid,
            "effects": effects,
        }

    @staticmethod
    def _status(connection, event):
        found = connection.execute(
            "SELECT status FROM hookonce.run_states WHERE event = %s", [event]
        ).fetchone()
        return found and found[0]

    def _decide(self, connection, event, event_id, name):
        """A person looks at the other side, and says what was found."""
        done = [key for of, did, key in self._other.effects() if (of, did) == (event_id, name)]
        if done:
            result = {"did": name, "key": done[0]}
            assert steps.mark_done(connection, OFF, (event, "pay", name), result, "a person")
        else:
            assert steps.forget(connection, (event, "pay", name), "a person")


if __name__ == "__main__":
    story = Story(*sys.argv[1:])
    with psycopg.connect(libpq_url(sys.argv[1])) as connection:
        connection.execute("CREATE TABLE public.paid (event text)")
    story._work()  # noqa: SLF001  what is slow the first time is not to be slow in each child
    gc.freeze()
    for fatal in range(1, 100):
        told = story.told(fatal)
        sys.stdout.write(json.dumps(told) + "\n")
        if told["survived"]:
            break
