"""The end of a run is on its way while the next one's handler is called: nothing is sent before it is heard of."""

import time
from contextlib import suppress
from datetime import timedelta

import pytest
from sqlalchemy import text

from hookonce.jobs.handlers import Registry
from hookonce.receiver.ledger.runs import ends
from tests.support.inbox import effect, inbox
from tests.support.waiting import until

__all__ = ["inbox"]

NAMES = ["a", "b", "c"]
REFUSED_LATE = "ALTER TABLE effects ADD CONSTRAINT single UNIQUE (event) DEFERRABLE INITIALLY DEFERRED"
SLOW_COMMIT = """
CREATE TABLE slow (number integer);
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.25); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slowly AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION slowly()
"""
STOLEN = "UPDATE hookonce.queue SET token = gen_random_uuid() WHERE event = %s"


@pytest.fixture(autouse=True)
def all_quick(monkeypatch):
    """Have each handler count as quick, however busy the machine is."""
    monkeypatch.setattr(Registry, "is_quick", lambda *_: True)


def on_its_way(inbox):
    return inbox.drains[0].executor.ending


def test_handler_is_called_while_the_end_of_the_run_before_is_on_its_way(inbox):
    found = []

    def looks(event, tx):
        ending = on_its_way(inbox)
        effect(event, tx)
        found.append((ending and ending.event.event_id, on_its_way(inbox)))

    inbox.on(looks)
    inbox.deliver(*NAMES)
    inbox.work()

    assert found == [(None, None), ("a", None), ("b", None)]
    assert inbox.effects() == NAMES


def test_statement_sees_what_the_run_before_has_written(inbox):
    seen = []

    def counts(event, tx):
        seen.append(tx.execute(text("SELECT count(*) FROM effects")).scalar())
        effect(event, tx)

    inbox.on(counts)
    inbox.deliver(*NAMES)
    inbox.work()

    assert seen == [0, 1, 2]


def test_each_run_is_noted_with_the_wait_for_its_own_end(inbox, monkeypatch):
    noted = []
    monkeypatch.setattr(
        Registry, "note", lambda _, name, took: noted.append((name, took.total_seconds() > 0.2))
    )
    inbox.connection.execute(SLOW_COMMIT)

    @inbox.on
    def writes(event, tx):
        if event.event_id == "a":
            tx.execute(text("INSERT INTO slow VALUES (1)"))

    inbox.deliver(*NAMES)
    inbox.work()

    assert noted == [("writes", True), ("writes", False), ("writes", False)]


WAYS = {
    "by a statement": effect,
    "by the driver": lambda event, tx: tx.connection.driver_connection.execute(
        "INSERT INTO effects (event) VALUES (%s)", [event.event_id]
    ),
    "by a cursor of the server's": lambda event, tx: (
        tx.execute(text("SELECT 1").execution_options(stream_results=True)).all(),
        effect(event, tx),
    ),
    "by a savepoint": lambda event, tx: (tx.begin_nested().rollback(), effect(event, tx)),
    "swallowing everything": lambda event, tx: swallowed(effect, event, tx),
}


def swallowed(function, *arguments):
    with suppress(BaseException):
        function(*arguments)


def doubled_once(event, tx):
    """Have the end of the first event fail at its COMMIT, once."""
    if event.event_id == "a" and event.attempt == 1:
        for _ in range(2):
            effect(event, tx)
        return True
    return False


@pytest.mark.parametrize("way", WAYS)
def test_end_that_fails_late_fails_its_own_run_and_no_other(inbox, way):
    def handler(event, tx):
        if not doubled_once(event, tx):
            WAYS[way](event, tx)

    inbox.connection.execute(REFUSED_LATE)
    inbox.on(handler, attempts=3)
    inbox.deliver(*NAMES)
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    inbox.work()

    assert inbox.effects() == NAMES
    assert {run[0]: run[2:] for run in inbox.runs()} == {
        "a": ("done", 2),
        "b": ("done", 1),
        "c": ("done", 1),
    }
    assert len(inbox.rows("SELECT 1 FROM hookonce.failures")) == 1


@pytest.mark.parametrize("says_nothing", [False, True], ids=["writes", "sends nothing"])
def test_end_that_fails_late_is_found_before_the_next_run_is_ended(inbox, says_nothing):
    def handler(event, tx):
        if not doubled_once(event, tx) and not says_nothing:
            effect(event, tx)

    inbox.connection.execute(REFUSED_LATE)
    inbox.on(handler, attempts=1)
    inbox.deliver(*NAMES)
    inbox.work()

    assert {run[0]: run[2] for run in inbox.runs()} == {"a": "dead", "b": "done", "c": "done"}


def test_failure_of_the_next_handler_is_its_own(inbox):
    def handler(event, tx):
        if doubled_once(event, tx):
            return
        if event.event_id == "b":
            raise ValueError("of b")
        effect(event, tx)

    inbox.connection.execute(REFUSED_LATE)
    inbox.on(handler, attempts=1)
    inbox.deliver(*NAMES)
    inbox.work()

    errors = dict(
        inbox.rows(
            "SELECT e.event_id, f.error FROM hookonce.failures f JOIN hookonce.events e ON e.id = f.event"
        )
    )
    assert {run[0]: run[2] for run in inbox.runs()} == {"a": "dead", "b": "dead", "c": "done"}
    assert "ValueError" in errors["b"]
    assert "single" in errors["a"]


def test_run_that_was_taken_over_before_its_end_is_another_s(inbox):
    def handler(event, tx):
        effect(event, tx)
        if event.event_id == "a":
            inbox.connection.execute(STOLEN, [event.id])

    inbox.on(handler, attempts=1)
    inbox.deliver(*NAMES)
    inbox.work()

    assert sorted(inbox.effects()) == ["b", "c"]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_connection_that_breaks_at_the_end_charges_neither_run(inbox, monkeypatch):
    broken = []
    right = ends.EndSent.hear

    def hear(self):
        if not broken:
            broken.append(self)
            connection = self._connection
            inbox.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
            connection.pgconn.finish()
        right(self)

    monkeypatch.setattr(ends.EndSent, "hear", hear)
    inbox.on(effect, attempts=1)
    inbox.deliver(*NAMES)

    until(lambda: (inbox.work(), inbox.effects())[1], NAMES)

    assert {run[2:] for run in inbox.runs()} == {("done", 1)}
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_time_of_a_handler_stands_still_while_it_waits_for_the_run_before(inbox, monkeypatch):
    right = ends.EndSent.hear

    def hear(self):
        time.sleep(0.3)
        right(self)

    monkeypatch.setattr(ends.EndSent, "hear", hear)
    inbox.on(effect, attempts=1, timeout=timedelta(seconds=0.2))
    inbox.deliver(*NAMES)
    inbox.work()

    assert {run[2] for run in inbox.runs()} == {"done"}
