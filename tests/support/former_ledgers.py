"""Ledgers of before 0021, with an event of each kind: `python -m tests.support.former_ledgers URL 0016`.

What a revision has no column for is left out, so that one list of events is good for all of them.
"""

import argparse
import json
import uuid
from dataclasses import dataclass, field
from functools import partial

import psycopg
from psycopg import sql

from hookonce.receiver.config.server_urls import libpq_url, schema_of, with_schema
from hookonce.receiver.ledger.database import engines, migrate, schema
from hookonce.receiver.ledger.maintenance import partitions

TOKEN = uuid.UUID(int=1)
BATCH = uuid.UUID(int=2)
COMMITTED = uuid.UUID(int=3)
EARLIER = "2026-01-05 10:00:00+00"
LATER = "2026-01-05 10:00:30+00"
AHEAD = "2999-01-01 00:00:00+00"


@dataclass
class Run:
    """A run of before; `after` is what differs then: of (status, attempts, cycle, waits)."""

    handler: str
    status: str
    after: dict = field(default_factory=dict)
    columns: dict = field(default_factory=dict)
    failures: int = 0


@dataclass
class Kept:
    """An event of before; `after` is what differs then: of (status, waits)."""

    name: str
    status: str
    runs: list = field(default_factory=list)
    after: dict = field(default_factory=dict)
    columns: dict = field(default_factory=dict)
    since: str = "0003"


def _run(status, handler="credit", after=None, failures=0, **columns):
    return Run(handler, status, after or {}, columns, failures)


_done = partial(_run, "done", attempts=1, started_at=EARLIER, finished_at=LATER, result=json.dumps({"ok": 1}))
_dead = partial(_run, "dead", attempts=3, started_at=EARLIER, finished_at=LATER, failures=3)
_waiting = partial(_run, "waiting", due_at=LATER)
_leased = partial(_run, token=TOKEN, lease_until=AHEAD, due_at=AHEAD)
_running = partial(_leased, "running", attempts=2, started_at=EARLIER)


def _suspected(**others):
    return {"status": "waiting", "attempts": 1, "waits": "suspect"} | others


def _event(name, status, *runs, after=None, since="0003", **columns):
    return Kept(name, status, list(runs), after or {}, columns, since)


EVENTS = [
    _event("received", "received", due_at=EARLIER),
    _event("put off", "received", due_at=AHEAD),
    _event("held", "held"),
    _event("ignored", "ignored"),
    _event("unreadable", "dead"),
    _event("done without a run", "done"),
    _event("repeated", "done", _done(), deliveries=5),
    _event("of a paused source", "received", due_at=EARLIER, parked="source", since="0004",
           after={"waits": "source:stripe"}),
    _event("waits in a paused source", "waiting", _waiting(attempts=1, failures=1), due_at=LATER, parked="source",
           since="0004", after={"waits": "source:stripe"}),
    _event("waits", "waiting", _waiting(attempts=2, failures=2), due_at=LATER),
    _event("waits for its handler", "waiting", _waiting(parked="handler"), due_at=LATER, parked="handler",
           since="0004"),
    _event("waits for a place", "waiting", _waiting(parked="limit:acct_1", slot_at=LATER, schedule="5/s@1"),
           due_at=LATER, parked="limit:acct_1", since="0006"),
    _event("waits for its time", "waiting", _waiting(due_at=AHEAD, slot_at=AHEAD, schedule="5/s@1"), due_at=AHEAD),
    _event("is a suspect", "waiting", _waiting(attempts=1, parked="suspect"), due_at=LATER, parked="suspect",
           since="0013"),
    _event("runs", "running", _running(after=_suspected()), due_at=AHEAD,
           after={"status": "waiting", "waits": "suspect"}),
    _event("runs beside", "running", _running(after=_suspected(), beside=True), due_at=AHEAD, since="0013",
           after={"status": "waiting", "waits": "suspect"}),
    _event("was lost", "running", _running(after=_suspected(), lease_until=LATER, due_at=LATER), due_at=LATER,
           after={"status": "waiting", "waits": "suspect"}),
    _event("was lost and charged", "running", _running(after=_suspected(attempts=2), failures=2), due_at=AHEAD,
           after={"status": "waiting", "waits": "suspect"}),
    _event("is leased, not started", "running", _leased("waiting", attempts=1), due_at=AHEAD,
           after={"status": "waiting"}),
    *[_event(f"in a batch {n}", "running", _running("bulk", token=BATCH, attempts=0,
                                                    after={"status": "waiting"}), due_at=AHEAD, since="0014",
             after={"status": "waiting"}) for n in range(3)],
    _event("committed by itself", "running", _running(token=COMMITTED, after={"status": "dead"}), due_at=AHEAD,
           since="0019", after={"status": "dead"}),
    _event("done", "done", _done()),
    _event("done, sealed", "done", _done(result=None, sealed_result=b"sealed", key_id="k1"), since="0012"),
    _event("done without a result", "done", _done(result=None)),
    _event("dead", "dead", _dead()),
    _event("dead after a replay", "dead", _dead(cycle=3)),
    _event("replayed", "waiting", _waiting(attempts=0, cycle=2), due_at=LATER),
    _event("one done, one dead", "dead", _done(), _dead("mail")),
    _event("one done, one waits", "waiting", _done(), _waiting("mail", attempts=1, failures=1), due_at=LATER),
    _event("one runs, one waits, one dead", "running", _running(after=_suspected()), _waiting("mail"), _dead("log"),
           due_at=LATER, after={"status": "waiting"}),
    _event("one parked, one waits", "waiting", _waiting(parked="handler"), _waiting("mail"), due_at=LATER,
           since="0004"),
    _event("with steps", "done", _done()),
    _event("of another body", "done", _done()),
]  # fmt: skip


def of(revision):
    """Return the events that a ledger of a revision can hold."""
    return [event for event in EVENTS if event.since <= revision]


def empty(url, revision):
    """Make a ledger of a revision, with nothing in it, in the schema of the URL, as the version of then did."""
    engine, place = engines.engine(url), schema_of(url)
    with engine.begin() as connection:
        driver = engines.raw(connection)
        schema.create(driver, place)
        migrate._run_migrations(connection, place, revision)  # noqa: SLF001  no upgrade goes so far only
        partitions.create_partitions(driver)
    engine.dispose()


def make(url, revision):
    """Make a ledger of a revision with an event of each kind; that of 0.1 (0003) lies in `public`. Return its URL."""
    url = with_schema(url, "public") if revision < "0004" else url
    empty(url, revision)
    with psycopg.connect(libpq_url(url)) as connection:
        schema.use(connection, schema_of(url))
        fill(connection, revision)
    return url


def fill(connection, revision):
    """Store an event of each kind; return their ids by name."""
    ids = {event.name: _store(connection, event) for event in of(revision)}
    _insert(
        connection, "steps", event=ids["with steps"], handler="credit", name="pay", state="done", owner=TOKEN
    )
    _insert(connection, "conflicts", event=ids["of another body"], fingerprint=b"2", headers="{}", body=b"{}")
    _insert(connection, "pauses", kind="source", name="stripe")
    _insert(connection, "breakers", handler="mail", failures=1, error="E")
    batch = [number for name, number in ids.items() if name.startswith("in a batch")]
    _insert(connection, "batches", handler="bulk", events=batch, token=BATCH, lease_until=AHEAD)
    _insert(connection, "batches", handler="bulk", events=[1, 2], error="halved")
    _insert(connection, "limit_places", handler="credit", event=ids["runs"], key="", token=TOKEN)
    if "committed by itself" in ids:
        _insert(connection, "marks", event=ids["committed by itself"], handler="credit", token=COMMITTED)
    return ids


def _store(connection, event):
    number = _insert(
        connection,
        "events",
        source="stripe",
        provider="stripe",
        event_id=event.name,
        type="a",
        fingerprint=b"\\x00",
        id_is_signed=True,
        status=event.status,
        **event.columns,
    )
    for run in event.runs:
        _insert(connection, "runs", event=number, handler=run.handler, status=run.status, **run.columns)
        for attempt in range(run.failures):
            cycle = run.columns.get("cycle", 1)
            _insert(
                connection,
                "failures",
                event=number,
                handler=run.handler,
                cycle=cycle,
                attempt=attempt + 1,
                error="E",
            )
    return number


def _insert(connection, table, **row):
    """Insert a row as far as there are columns for it; return its id, where it has one."""
    place = schema.of(connection)
    found = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
        [place, table],
    )
    columns = [name for (name,) in found if name in row]
    if not columns:
        return None
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING to_json({}.*) ->> 'id'").format(
        sql.Identifier(place, table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(sql.Placeholder() * len(columns)),
        sql.Identifier(table),
    )
    number = connection.execute(statement, [row[name] for name in columns]).fetchone()[0]
    return None if number is None else int(number)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("url")
    asked.add_argument("revision")
    given = asked.parse_args()
    print(make(given.url, given.revision))  # noqa: T201
