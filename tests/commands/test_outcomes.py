"""One look for all who wait: what it says of what is not there, of a connection that broke, and of time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.commands.outcomes import Outcomes
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.ledger import commands
from hookonce.receiver.ledger.commands import CommandState
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from tests.support.waiting import until

NAME = ("commands.payments", "0" * 64)
DEADLINE = 30


@pytest.fixture
def told(database_url):
    made = Outcomes(database_url)
    yield made
    made.close()


@pytest.fixture
def ledger(database_url):
    with psycopg.connect(libpq_url(database_url), autocommit=True) as connection:
        yield connection


def accept(ledger, event_id=NAME[1]):
    ledger.execute(
        "WITH stored AS ("
        "INSERT INTO hookonce.events (source, provider, event_id, type, account, fingerprint, id_is_signed) "
        "VALUES (%s, 'command', %s, 'payments', 'shop', '', true) RETURNING *) "
        "INSERT INTO hookonce.queue (event, received_at, source, type, due_at) "
        "SELECT id, received_at, source, type, now() FROM stored",
        [NAME[0], event_id],
    )


def end(ledger):
    ledger.execute(
        "WITH gone AS (DELETE FROM hookonce.queue RETURNING event) "
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at, result) "
        "SELECT id, source, 1, 'done', 1, now(), to_json(event_id) FROM hookonce.events JOIN gone ON event = id"
    )


def test_command_that_is_not_there_is_told_at_once(told):
    assert told.of(NAME, timedelta(seconds=DEADLINE)) is None


def test_what_nobody_foresaw_is_told_at_once_and_the_next_look_goes_on(told, ledger, monkeypatch):
    accept(ledger)
    monkeypatch.setattr(commands, "find", lambda *_: {}["no such thing"])
    with pytest.raises(LedgerUnavailable, match="KeyError"):
        told.of(NAME, timedelta(seconds=DEADLINE))

    monkeypatch.undo()

    assert told.of(NAME, timedelta(milliseconds=20)).state == CommandState.IN_PROGRESS


def test_command_in_progress_is_told_when_the_wait_is_over(told, ledger):
    accept(ledger)

    assert told.of(NAME, timedelta(milliseconds=20)).state == CommandState.IN_PROGRESS


def test_all_who_wait_are_looked_up_together(told, ledger, monkeypatch):
    looks, everybody = [], threading.Event()

    def find(connection, names, keyring):
        looks.append(len(names))
        if len(names) == 20:
            everybody.set()
        return right(connection, names, keyring)

    right = commands.find
    monkeypatch.setattr(commands, "find", find)
    for n in range(20):
        accept(ledger, f"{n:064}")
    with ThreadPoolExecutor(20) as pool:
        names = [(NAME[0], f"{n:064}") for n in range(20)]
        asked = [pool.submit(told.of, name, timedelta(seconds=DEADLINE)) for name in names]
        assert everybody.wait(DEADLINE)
        end(ledger)

        assert [each.result(DEADLINE).result for each in asked] == [event_id for _, event_id in names]
    assert max(looks) == 20


def test_connection_that_broke_is_opened_again(told, ledger):
    accept(ledger)
    told.of(NAME)
    ledger.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )

    assert told.of(NAME).state == CommandState.IN_PROGRESS


def test_ledger_that_is_away_is_told_to_all_and_asked_again_later(told, ledger):
    accept(ledger)
    ledger.execute("ALTER VIEW hookonce.run_states RENAME TO gone")
    with pytest.raises(LedgerUnavailable):
        told.of(NAME, timedelta(seconds=DEADLINE))
    ledger.execute("ALTER VIEW hookonce.gone RENAME TO run_states")

    assert told.of(NAME).state == CommandState.IN_PROGRESS


def test_connection_is_let_go_of_when_nobody_asks(told, ledger):
    told.idle = timedelta(milliseconds=10)
    accept(ledger)
    told.of(NAME)

    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    until(lambda: ledger.execute(others).fetchall(), [(0,)], falling=True)
    assert told.of(NAME).state == CommandState.IN_PROGRESS
