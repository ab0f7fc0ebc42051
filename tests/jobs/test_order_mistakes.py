"""Mistakes that guards made by hand were found with; what is asked of ours must notice each."""

import pytest

from hookonce.jobs import order as guard
from hookonce.receiver.ledger.database import connections, functions
from hookonce.receiver.ledger.entities import Entities, Version
from tests.support.inbox import Inbox
from tests.support.ordered import OWN, deliver, order


def applied(inbox, *events, reverse=False, fails=(), replayed=()):
    """Which events a handler with `stale="skip"` was given, in the order in which it was, if it did not fail."""
    seen = []

    def save(event, _):
        if event.event_id in fails:
            raise LookupError("no")
        seen.append(event.event_id)

    own = Inbox(inbox.settings, inbox.connection)
    own.on(save, **OWN, attempts=1)
    inbox.connection.execute("TRUNCATE hookonce.entities, hookonce.queue, hookonce.events CASCADE")
    ids = dict(zip([each["event_id"] for each in events], deliver(own, *events), strict=True))
    if reverse:
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 s' * event")
    own.work()
    for event in replayed:
        inbox.connection.execute(
            "INSERT INTO hookonce.queue (event, received_at, source, type, handler, cycle, due_at) "
            "SELECT id, received_at, source, type, 'save', 2, now() FROM hookonce.events WHERE id = %s",
            [ids[event]],
        )
        own.work([ids[event]])
    own.drains[0].close()
    return seen


QUESTIONS = {
    "an older one is skipped": (
        lambda inbox: applied(inbox, order("b", 2), order("a", 1)),
        ["b"],
    ),
    "newer ones are not": (
        lambda inbox: applied(inbox, order("a", 1), order("b", 2), order("c", 3)),
        ["a", "b", "c"],
    ),
    "equal ones go by the ledger": (
        lambda inbox: applied(inbox, order("a", 1), order("b", 1), order("c", 1)),
        ["a", "b", "c"],
    ),
    "equal ones that come late are skipped": (
        lambda inbox: applied(inbox, order("a", 1), order("b", 1), order("c", 1), reverse=True),
        ["c"],
    ),
    "the newest runs again": (
        lambda inbox: applied(inbox, order("a", 1), order("b", 2), replayed=["b"]),
        ["a", "b", "b"],
    ),
    "a failure is taken back": (
        lambda inbox: applied(inbox, order("b", 2), order("a", 1), fails=["b"]),
        ["a"],
    ),
    "one without a version runs, and raises nothing": (
        lambda inbox: applied(inbox, order("b", 2), order("n", None), order("a", 1), order("c", 3)),
        ["b", "n", "c"],
    ),
}


def wrong(inbox):
    """Return the questions that are answered otherwise than they should be."""
    return {question for question, (ask, expected) in QUESTIONS.items() if ask(inbox) != expected}


raised_within = Entities.raise_to


def raise_outside(url):
    def raise_to(_, version, patience):
        with connections.connect(url) as other:
            return raised_within(Entities(other.cursor()), version, patience)

    return raise_to


NEWER = "(known.version, known.event) <= (excluded.version, excluded.event)"


def without_version(event, handler):
    entity, version = event.subject or ("o1", 0)
    return Version(handler.name, event.source, "", entity, version, event.id)


MISTAKES = {
    "no tie": lambda patch, _: patch(
        functions, "RAISE", functions.RAISE.replace(NEWER, "known.version <= excluded.version")
    ),
    "no tie, strictly newer": lambda patch, _: patch(
        functions, "RAISE", functions.RAISE.replace(NEWER, "known.version < excluded.version")
    ),
    "guard outside the transaction": lambda patch, url: patch(Entities, "raise_to", raise_outside(url)),
    "no version is a version": lambda patch, _: patch(guard, "_version_of", without_version),
    "no guard": lambda patch, _: patch(Entities, "raise_to", lambda _, version, __: version.event),
}


def test_guard_answers_every_question_right(inbox):
    assert wrong(inbox) == set()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_noticed(inbox, monkeypatch, database_url, mistake):
    MISTAKES[mistake](monkeypatch.setattr, database_url)

    assert wrong(inbox)
