"""The order of events in Django's transactions, with sealed results, and behind a role that has functions alone."""

import os
from dataclasses import replace

import pytest

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.database import functions
from tests.support.django_project import entry
from tests.support.inbox import inbox
from tests.support.ordered import OWN, deliver, order, save

__all__ = ["entry", "inbox"]


def save_in_django(event, connection):
    if event.event_id == "x":
        raise LookupError("no")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects VALUES (%s)", [event.event_id])


def results(inbox):
    return dict(
        inbox.rows(
            "SELECT e.event_id, r.result FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event"
        )
    )


@pytest.mark.parametrize("by_function", [False, True])
@pytest.mark.usefixtures("entry")
def test_newest_wins_in_django(inbox, monkeypatch, by_function):
    if by_function:
        inbox.connection.execute(functions.RAISE_ENTITY.definition.encode())
        entities = DjangoTransactions.entities
        monkeypatch.setattr(
            DjangoTransactions,
            "entities",
            lambda self, given: entities(self, given)._replace(by_function=True),
        )
    inbox.transactions = DjangoTransactions
    inbox.on(save_in_django, **OWN, attempts=1)

    _, newer, *_ = deliver(
        inbox, order("x", 9), order("b", 2), order("a", 1), order("n", None), order("c", 2)
    )
    inbox.work()

    assert inbox.effects() == ["b", "c", "n"]
    assert results(inbox)["a"] == {"skipped": "stale", "newest": newer}
    assert inbox.rows("SELECT entity, version FROM hookonce.entities") == [("o1", 2)]
    assert inbox.rows(
        "SELECT source, count FROM hookonce.activity WHERE minutes = 0 AND what = 'unguarded'"
    ) == [("save_in_django", 1)]


def test_skip_is_told_where_results_are_sealed(inbox):
    inbox.settings = replace(inbox.settings, keyring=Keyring([os.urandom(32)]))
    inbox.on(save, **OWN)

    newer, _ = deliver(inbox, order("b", 2), order("a", 1))
    inbox.work()

    assert results(inbox) == {"b": None, "a": {"skipped": "stale", "newest": newer}}
