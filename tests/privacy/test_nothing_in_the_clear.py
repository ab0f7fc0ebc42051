"""With `encryption_keys` nothing that an event, a handler or a client said lies in the database in the clear."""

import os
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from hookonce import GiveUp, Refusal, SealedStore
from hookonce.jobs.handlers import Handler
from hookonce.receiver.config.commands import COMMAND, REFUSAL
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.records import Claim, Key, Result, State, Terms
from hookonce.receiver.ledger import commands, handshake_secrets
from hookonce.receiver.ledger.maintenance import key_rotation
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.store import store
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.inbox import inbox
from tests.support.new_event import new_event

__all__ = ["inbox"]

CANARY = "canary-7f3a9"
KEYRING = Keyring([os.urandom(32)])
TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'hookonce' AND c.relkind = 'r' ORDER BY 1
"""


def returns(_event, _):
    return {"iban": CANARY}


def raises(_event, _):
    raise ValueError(f"no such customer: {CANARY}")


def chains(_event, _):
    try:
        raises(None, None)
    except ValueError as error:
        raise LookupError(CANARY) from error


def gives_up(_event, _):
    raise GiveUp(f"never: {CANARY}")


def asks_wrongly(_event, tx):
    tx.execute(text(f"SELECT '{CANARY}'::int"))


def commits(_event, tx):
    try:
        tx.connection.driver_connection.execute("COMMIT")
    finally:
        raise ValueError(CANARY)


def does_a_step(event, _):
    event.step("charge", lambda _: {"card": CANARY})
    if event.attempt == 1:
        raise ValueError(CANARY)


def refuses(_event, _):
    raise Refusal(402, "declined", CANARY)


HANDLERS = (returns, raises, chains, gives_up, asks_wrongly, commits, does_a_step)


def live(inbox, keyring):
    """Have everything happen that leaves something of what others said."""
    inbox.settings = replace(inbox.settings, keyring=keyring)
    for handler in HANDLERS:
        inbox.on(handler, attempts=2)
    pause = (timedelta(0), timedelta(0))
    command = Handler("commands.pay", "commands.pay", "*", refuses, 1, pause, timedelta(seconds=5))
    inbox.registry.add(command)
    asked = {"source": "commands.pay", "provider": COMMAND, "event_id": "c" * 64}
    body = f'{{"iban": "{CANARY}"}}'.encode()
    store(
        inbox.connection,
        [sealed(new_event(body=body), keyring), sealed(new_event(body=body, **asked), keyring)],
    )
    while inbox.work():
        pass
    handshake_secrets.keep(inbox.connection, "asana", CANARY, keyring)
    answers = SealedStore(PostgresStore.at(inbox.settings.database_url), keyring)
    claim = answers.claim(Claim(Key("pay", "one"), b"", uuid4(), Terms()))
    answers.complete(claim, State.COMPLETED, Result(200, {"Location": CANARY}, CANARY.encode()))
    answers.close()


def found(inbox):
    """The tables that hold the canary, as text or as bytes."""
    places = set()
    for (table,) in inbox.rows(TABLES):
        for (row,) in inbox.rows(f'SELECT t::text FROM hookonce."{table}" t'):  # noqa: S608  of the catalogue
            if CANARY in row or CANARY.encode().hex() in row:
                places.add(table.partition("_2")[0])
    return places


def test_nothing_that_others_said_lies_in_the_clear(inbox):
    live(inbox, KEYRING)

    assert found(inbox) == set()


def test_all_of_it_is_found_where_there_are_no_keys(inbox):
    live(inbox, OFF)

    assert found(inbox) == {"bodies", "runs", "failures", "steps", "handed_secrets", "idempotency"}


def test_rotation_leaves_nothing_in_the_clear(inbox):
    live(inbox, OFF)

    with_keys = key_rotation.rotate(inbox.connection, KEYRING, "ann")

    assert [done.left for done in with_keys][-1] == {}
    assert found(inbox) == set()
    assert key_rotation.keys_in_use(inbox.connection) == {KEYRING.first}
    check_shown(inbox)


def test_who_has_the_key_is_shown_all_of_it(inbox):
    live(inbox, KEYRING)

    check_shown(inbox)


def number(inbox):
    return inbox.rows("SELECT id FROM hookonce.event_states WHERE event_id = 'evt_1'")[0][0]


def check_shown(inbox):
    detail = event_details.detail(inbox.connection, number(inbox), KEYRING).with_content()
    by_handler = {run.handler: run for run in detail.runs}
    assert by_handler["returns"].result == {"iban": CANARY}
    assert [step.result for step in detail.steps] == [{"card": CANARY}]
    for handler in ("raises", "chains", "gives_up", "asks_wrongly", "commits", "does_a_step"):
        failure = next(each for each in detail.failures if each.handler == handler)
        assert CANARY in failure.traceback, handler
    outcome = commands.find(inbox.connection, {("commands.pay", "c" * 64)}, KEYRING)["commands.pay", "c" * 64]
    assert outcome.result[REFUSAL]["detail"] == CANARY
    assert handshake_secrets.kept(inbox.connection, "asana", KEYRING) == CANARY


def test_class_and_place_of_an_error_stay_for_grouping(inbox):
    live(inbox, KEYRING)

    errors = dict(inbox.rows("SELECT DISTINCT ON (handler) handler, error FROM hookonce.failures"))
    assert errors["raises"].startswith("ValueError (")
    assert errors["chains"].startswith("LookupError (")
    assert errors["gives_up"].startswith("GiveUp (")
    assert errors["commits"].startswith("CommitRefused: the transaction is hookonce's: return to commit it")


@pytest.mark.parametrize("what", ["run", "command", "secret"])
def test_without_its_key_it_is_told_what_is_missing(inbox, what):
    live(inbox, KEYRING)
    other = Keyring([os.urandom(32)])

    if what == "run":
        detail = event_details.detail(inbox.connection, number(inbox), other).with_content()
        runs = {run.handler: run for run in detail.runs}
        assert (runs["returns"].result, detail.steps[0].result) == (None, None)
        assert "is not configured here" in runs["returns"].unreadable
        assert "is not configured here" in detail.steps[0].unreadable
    elif what == "command":
        (outcome,) = commands.find(inbox.connection, {("commands.pay", "c" * 64)}, other).values()
        assert "is not configured here" in outcome.unreadable
    else:
        assert [one.secret for one in handshake_secrets.all_kept(inbox.connection, other)] == [None]
