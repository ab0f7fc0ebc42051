import os
from dataclasses import replace

import pytest

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.store import store
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.inbox import effect
from tests.support.new_event import new_event

KEYRING = Keyring([os.urandom(32)])


@pytest.fixture
def bodies(inbox):
    """The bodies that the handler was given; the event's body is sealed."""
    seen = []

    def handler(event, tx):
        seen.append(event.raw)
        effect(event, tx)

    inbox.on(handler)
    store(inbox.connection, [sealed(new_event("evt_1", b'{"a": 1}'), KEYRING)])
    return seen


def test_handler_gets_the_body_opened(inbox, bodies):
    inbox.settings = replace(inbox.settings, keyring=KEYRING)

    inbox.work()

    assert bodies == [b'{"a": 1}']


def test_run_waits_uncounted_when_the_worker_lacks_the_key(inbox, bodies, caplog):
    inbox.work()

    ((status, attempts, waits),) = inbox.rows(
        "SELECT status, attempts, due_at - now() BETWEEN '20 s' AND '30 s' FROM hookonce.run_states"
    )
    assert (status, attempts, waits, bodies) == ("waiting", 0, True, [])
    assert "is not configured here; add that key to encryption_keys" in caplog.text


def test_run_is_dead_at_once_when_its_body_was_tampered_with(inbox, bodies):
    inbox.settings = replace(inbox.settings, keyring=KEYRING)
    inbox.connection.execute("UPDATE hookonce.bodies SET body = set_byte(body, 20, 255 - get_byte(body, 20))")

    inbox.work()

    assert (inbox.runs(), bodies) == ([("evt_1", "handler", "dead", 1)], [])
    ((error,),) = inbox.rows("SELECT error FROM hookonce.failures")
    assert error.startswith("Tampered: what is stored under key")
