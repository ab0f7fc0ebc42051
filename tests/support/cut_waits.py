"""A worker that dies at each failpoint in turn of a wait, an arrival and a timeout, and the workers after it.

`python -m tests.support.cut_waits <database> <redis> <directory> <order>`: says one JSON line per failpoint of each
worker of an order of `ORDERS`.
"""

import gc
import json
import sys
from datetime import timedelta
from pathlib import Path

import psycopg

from hookonce.jobs.capabilities import waits
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.failpoints import arm
from hookonce.receiver.ledger.store import store
from tests.support.children import in_child
from tests.support.new_event import new_event
from tests.support.waiting_handlers import CI, fulfil

ORDERS = {
    "the order waits": ("order", "work", "check", "work"),
    "the check was there": ("check", "work", "order", "work"),
    "both come at once": ("order", "check", "work", "work"),
    "the time is over": ("order", "work", "time", "work"),
    "the check comes as the time is over": ("order", "work", "check", "time", "work"),
}
"""Steps that follow each other: an event comes, a worker does what is due, the time of a wait is over."""
# What is put off for moments is due; a wait lasts on.
LET_LEASES_PASS = """
UPDATE hookonce.claims SET lease_until = now();
UPDATE hookonce.queue SET due_at = now() WHERE due_at < now() + interval '1 hour'
"""
LET_WAITS_PASS = f"""
{LET_LEASES_PASS};
UPDATE hookonce.waits SET until = now() WHERE ended_at IS NULL;
UPDATE hookonce.queue SET due_at = now() WHERE handler = 'fulfil'
"""  # noqa: S608  a constant
WORKERS = 8
"""Workers that come after the one that has died, at most."""


class Story:
    def __init__(self, database_url, redis_url, directory):
        self._urls = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": "/dev/null"}
        self._log = Path(directory) / "points"
        self._number = 0

    def work(self, fatal=None):
        """Do what is due, and die at a failpoint, if one is given."""
        settings, registry = load_settings(self._urls), Registry()
        pause, limit = (timedelta(0), timedelta(0)), timedelta(seconds=30)
        registry.add(Handler("fulfil", "stripe", "order", fulfil, 20, pause, limit, awaits=(("ci", CI),)))
        waits.register(registry)
        if fatal is not None:
            arm(fatal, str(self._log))
        slot = SingleSlot(settings, registry)
        slot.run_due()
        slot.close()

    def told(self, connection, order, dies_in, fatal):
        """Return the end of an order and its check where the worker of one step died at one failpoint."""
        self._number += 1
        self._log.write_text("")
        connection.execute("TRUNCATE public.effects")
        has_survived = True
        for number, step in enumerate(order):
            if step == "work":
                connection.execute(LET_LEASES_PASS)
                point = fatal if number == dies_in else None
                has_survived &= in_child(lambda point=point: self.work(point))[0]
            elif step == "time":
                connection.execute(LET_WAITS_PASS)
            else:
                body = json.dumps({"sha": f"sha {self._number}", "n": 7}).encode()
                name = f"{step}-{self._number}"
                store(connection, [new_event(name, type=step, provider="acme", body=body)])
        for _ in range(WORKERS):
            if not connection.execute("SELECT FROM hookonce.queue").rowcount:
                break
            connection.execute(LET_WAITS_PASS if "time" in order else LET_LEASES_PASS)
            in_child(self.work)
        statuses = connection.execute(
            "SELECT handler, status FROM hookonce.run_states ORDER BY event, handler"
        )
        return {
            "dies_in": dies_in,
            "survived": has_survived,
            "met": self._log.read_text().split(),
            "effects": [
                row[0].rpartition(" ")[2] for row in connection.execute("SELECT event FROM public.effects")
            ],
            "statuses": sorted({status for _, status in statuses.fetchall()}),
            "left": connection.execute("SELECT count(*) FROM hookonce.queue").fetchone()[0],
        }


def tell(story, order):
    with psycopg.connect(libpq_url(sys.argv[1]), autocommit=True) as connection:
        connection.execute("CREATE TABLE public.effects (event text)")
        story.work()  # what is slow the first time is not to be slow in each child
        gc.freeze()
        for dies_in in [number for number, step in enumerate(order) if step == "work"]:
            for fatal in range(1, 100):
                told = story.told(connection, order, dies_in, fatal)
                sys.stdout.write(json.dumps(told) + "\n")
                if told["survived"]:
                    break


if __name__ == "__main__":
    *places, name = sys.argv[1:]
    tell(Story(*places), ORDERS[name])
