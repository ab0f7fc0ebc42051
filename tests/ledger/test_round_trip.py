"""Statements that go to PostgreSQL by libpq itself."""

import os
import signal
import socket
import threading
import uuid
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.ledger.database import round_trip as trips
from hookonce.receiver.ledger.database import schema
from hookonce.receiver.ledger.database.round_trip import PreparingConnection, failed_by, require, round_trip

ONE = "SELECT %(value)s::int + 1"
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'hookonce%'"


@pytest.fixture
def preparing(database_url, monkeypatch):
    monkeypatch.setattr(PreparingConnection, "is_betrayed", False)
    with PreparingConnection.connect(database_url) as connection:
        yield connection


@pytest.fixture
def other(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def answer(connection, query=ONE, **values):
    (result,) = round_trip(connection, [(query, values)])
    return require(result).get_value(0, 0).decode()


@pytest.mark.parametrize(
    ("value", "cast", "said"),
    [
        (None, "text", True),
        (True, "boolean", "true"),
        (7, "bigint", "7"),
        ("it's %(value)s", "text", "it's %(value)s"),
        (b"\x00\\x", "bytea", "\\x005c78"),
        (uuid.UUID(int=5), "uuid", str(uuid.UUID(int=5))),
        (timedelta(days=2, microseconds=3), "interval", "48:00:00.000003"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_arrive_as_what_they_are(preparing, value, cast, said):
    if value is None:
        assert answer(preparing, "SELECT %(value)s::text IS NULL", value=None) == "t"
    else:
        assert answer(preparing, f"SELECT %(value)s::{cast}::text", value=value) == said


def test_span_of_days_is_written_as_every_postgresql_reads_it(preparing):
    """Before version 15 no field of an interval may be more than 32 bits hold."""
    assert trips._as_text(timedelta(days=2, microseconds=3), "utf-8") == b"172800.000003 seconds"  # noqa: SLF001
    assert answer(preparing, "SELECT %(value)s::interval < '0'", value=timedelta(seconds=-1)) == "t"


def test_text_that_would_be_cut_is_refused(preparing):
    with pytest.raises(psycopg.DataError):
        answer(preparing, "SELECT %(value)s::text", value="a\0b")


def test_value_of_another_type_is_refused_before_anything_is_sent(preparing):
    with pytest.raises(KeyError):
        answer(preparing, value=1.5)
    assert answer(preparing, value=1) == "2"


def test_statement_is_prepared_once(preparing):
    for number in range(3):
        assert answer(preparing, value=number) == str(number + 1)

    assert preparing.execute(PREPARED).fetchone() == (1,)


@pytest.mark.parametrize("spoil", ["ROLLBACK", "DROP TABLE odd", "DEALLOCATE ALL"])
def test_statement_is_prepared_again_when_psycopg_has_deallocated_all(preparing, spoil):
    preparing.execute("CREATE TEMP TABLE odd ()")
    assert answer(preparing, value=1) == "2"
    preparing.commit()
    preparing.execute("SELECT 1", prepare=True)
    preparing.execute(spoil)

    assert answer(preparing, value=2) == "3"
    preparing.execute("SELECT 2", prepare=True)
    assert answer(preparing, value=3) == "4"


def test_statement_that_somebody_else_deallocated_fails_once(preparing):
    answer(preparing, value=1)
    preparing.commit()
    preparing.pgconn.exec_(b"DEALLOCATE ALL")

    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        answer(preparing, value=1)
    preparing.rollback()
    for number in range(2):
        assert answer(preparing, value=1) == "2", number
        preparing.commit()
        preparing.pgconn.exec_(b"DEALLOCATE ALL")


def test_text_goes_in_the_encoding_of_the_session(preparing):
    preparing.execute("SET client_encoding TO 'LATIN1'")

    assert answer(preparing, "SELECT length(%(value)s)", value="grüße") == "5"
    with pytest.raises(UnicodeEncodeError):
        answer(preparing, "SELECT length(%(value)s)", value="€")


def test_nothing_is_prepared_where_the_session_is_not_ours(preparing):
    round_trip(preparing, [(ONE, {"value": 1})], prepare=False)

    assert preparing.execute(PREPARED).fetchone() == (0,)


@pytest.mark.parametrize("why", ["a pooler", "a psycopg that does not tell"])
def test_nothing_is_prepared_that_might_vanish(preparing, monkeypatch, why):
    if why == "a pooler":
        preparing.prepare_threshold = None
    else:
        monkeypatch.setattr(trips, "_IS_TOLD", False)

    assert answer(preparing, value=1) == "2"
    assert preparing.execute(PREPARED).fetchone() == (0,)


def test_transaction_is_begun_where_there_is_none(preparing):
    preparing.execute("CREATE TEMP TABLE kept (value int)")
    preparing.commit()

    round_trip(preparing, [("INSERT INTO kept VALUES (%(value)s)", {"value": 1})])
    preparing.rollback()

    assert preparing.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_what_follows_a_failed_statement_is_not_done(preparing):
    preparing.execute("CREATE TEMP TABLE kept (value int)")
    preparing.commit()
    statements = [
        ("INSERT INTO kept VALUES (1)", {}),
        ("SELECT 1 / %(value)s::int", {"value": 0}),
        ("COMMIT", {}),
    ]

    done, failed = round_trip(preparing, statements)

    assert require(done).command_status == b"INSERT 0 1"
    assert failed_by(failed, psycopg.errors.DivisionByZero)
    with pytest.raises(psycopg.errors.DivisionByZero):
        require(failed)
    preparing.rollback()
    assert preparing.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    assert answer(preparing, value=1) == "2"


def test_server_that_goes_in_the_midst_is_an_operational_error(preparing, other):
    preparing.execute("SELECT 1")
    other.execute("SELECT pg_terminate_backend(%s)", [preparing.info.backend_pid])

    with pytest.raises(psycopg.OperationalError):
        answer(preparing, value=1)


def test_server_that_answers_nonsense_is_an_operational_error(preparing):
    """libpq gives the connection up then, and raises nothing by itself."""
    preparing.execute("SELECT 1")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.dup2(ours.fileno(), preparing.fileno())
        theirs.sendall(b"\x01\xff\xff\xff\xff")

        with pytest.raises(psycopg.OperationalError):
            answer(preparing, value=1)


@pytest.fixture
def interruptible():
    """Ctrl-C as Python has it, whatever a worker of another test has made of it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_connection_is_of_no_further_use_or_as_good_as_new(preparing):
    ringing = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    ringing.start()

    with pytest.raises(KeyboardInterrupt):
        round_trip(preparing, [("SELECT pg_sleep(%(value)s::int)", {"value": 20})])
    try:
        preparing.rollback()
    except psycopg.Error:
        return
    assert answer(preparing, value=1) == "2"


def test_statement_names_the_schema_of_its_connection(preparing):
    schema.use(preparing, "another")
    preparing.execute("CREATE SCHEMA another")
    preparing.execute("CREATE TABLE another.odd AS SELECT 5 AS value")

    assert answer(preparing, "SELECT value FROM hookonce.odd") == "5"


def test_plain_connection_will_do(other):
    assert answer(other, value=1) == "2"
