"""Runs that follow each other at once in a slot: each is committed before the next one's handler is called."""

import pytest
from sqlalchemy import text

from hookonce.jobs.handlers import Registry
from tests.support.inbox import effect, inbox

__all__ = ["inbox"]

NAMES = ["a", "b", "c"]
REFUSED_LATE = "ALTER TABLE effects ADD CONSTRAINT single UNIQUE (event) DEFERRABLE INITIALLY DEFERRED"


@pytest.fixture(autouse=True)
def all_quick(monkeypatch):
    """Have each handler count as quick, however busy the machine is."""
    monkeypatch.setattr(Registry, "is_quick", lambda *_: True)


def test_handler_is_called_when_the_run_before_is_committed(inbox):
    seen = []

    def looks(event, tx):
        seen.append((inbox.effects(), tx.execute(text("SELECT count(*) FROM effects")).scalar()))
        effect(event, tx)

    inbox.on(looks)
    inbox.deliver(*NAMES)
    inbox.work()

    assert seen == [([], 0), (["a"], 1), (["a", "b"], 2)]


def test_failure_takes_no_run_before_it_along(inbox):
    def fails_at_b(event, tx):
        effect(event, tx)
        if event.event_id == "b":
            raise ValueError

    inbox.on(fails_at_b, attempts=1)
    inbox.deliver(*NAMES)
    inbox.work()

    assert {run[0]: run[2] for run in inbox.runs()} == {"a": "done", "b": "dead", "c": "done"}
    assert inbox.effects() == ["a", "c"]


def test_commit_that_fails_fails_its_own_run_and_no_handler_is_called_twice(inbox):
    calls = []

    def handler(event, tx):
        calls.append(event.event_id)
        for _ in range(2 if len(calls) == 1 else 1):
            effect(event, tx)

    inbox.connection.execute(REFUSED_LATE)
    inbox.on(handler, attempts=1)
    inbox.deliver(*NAMES)
    inbox.work()

    assert calls == NAMES
    assert {run[0]: run[2] for run in inbox.runs()} == {"a": "dead", "b": "done", "c": "done"}
    assert inbox.effects() == ["b", "c"]


def test_run_that_was_taken_over_before_its_end_is_another_s(inbox):
    def handler(event, tx):
        effect(event, tx)
        if event.event_id == "a":
            inbox.connection.execute(
                "UPDATE hookonce.queue SET token = gen_random_uuid() WHERE event = %s", [event.id]
            )

    inbox.on(handler, attempts=1)
    inbox.deliver(*NAMES)
    inbox.work()

    assert inbox.effects() == ["b", "c"]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []
