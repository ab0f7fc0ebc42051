import os
from dataclasses import replace

import pytest
from inbox import effect
from make import new_event

from receiver.ledger.store import store
from receiver.protection import sealed
from receiver.sealing import Keyring

KEYRING = Keyring([os.urandom(32)])


@pytest.fixture
def bodies(desk):
    """The bodies that the handler was given; the event's body is sealed."""
    seen = []

    def handler(event, tx):
        seen.append(event.raw)
        effect(event, tx)

    desk.on(handler)
    store(desk.connection, [sealed(new_event("evt_1", b'{"a": 1}'), KEYRING)])
    return seen


def test_handler_gets_the_body_opened(desk, bodies):
    desk.settings = replace(desk.settings, keyring=KEYRING)

    desk.work()

    assert bodies == [b'{"a": 1}']


def test_run_waits_uncounted_when_the_worker_lacks_the_key(desk, bodies, caplog):
    desk.work()

    ((status, attempts, waits),) = desk.rows(
        "SELECT status, attempts, due_at - now() BETWEEN '20 s' AND '30 s' FROM runs"
    )
    assert (status, attempts, waits, bodies) == ("waiting", 0, True, [])
    assert "is not configured here; add that key to encryption_keys" in caplog.text


def test_run_is_dead_at_once_when_its_body_was_tampered_with(desk, bodies):
    desk.settings = replace(desk.settings, keyring=KEYRING)
    desk.connection.execute("UPDATE bodies SET body = set_byte(body, 20, 255 - get_byte(body, 20))")

    desk.work()

    assert (desk.runs(), bodies) == ([("evt_1", "handler", "dead", 1)], [])
    ((error,),) = desk.rows("SELECT error FROM failures")
    assert error.startswith("Damaged: what is stored under key")
