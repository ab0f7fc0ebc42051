"""Django's handlers hold psycopg's own connection, and libpq's in that: PostgreSQL keeps them from a commit."""

import contextlib
from datetime import timedelta

import psycopg
import pytest
from psycopg.pq import ExecStatus

from hookonce.jobs.attempts import django_transaction
from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.stories import mistakes
from tests.stories.mistakes import replace, reword
from tests.support.django_project import entry
from tests.support.inbox import inbox

__all__ = ["entry", "inbox"]

INSERT = "INSERT INTO effects (event) VALUES (%s)"


@pytest.fixture
def django(inbox, entry):  # noqa: ARG001  it leads there
    inbox.transactions = DjangoTransactions
    return inbox


def libpq(connection, statement):
    result = connection.connection.pgconn.exec_(statement.encode())
    if result.status == ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result)


def by_libpq(statement):
    return lambda connection: libpq(connection, statement)


def by_a_client_cursor(statement):
    return lambda connection: psycopg.ClientCursor(connection.connection).execute(statement)


def by_a_cursor_of_django(statement):
    return lambda connection: connection.cursor().execute(statement)


def by_the_driver(statement):
    return lambda connection: connection.connection.execute(statement)


def by_psycopg(connection):
    connection.connection.commit()


def errors(inbox):
    return [row[0] for row in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id")]


STATEMENTS = ["COMMIT", "COMMIT AND CHAIN", "SELECT 1; END", "SET CONSTRAINTS ALL IMMEDIATE; COMMIT"]
COMMITS = {
    **{f"libpq: {each}": by_libpq(each) for each in STATEMENTS},
    **{f"client cursor: {each}": by_a_client_cursor(each) for each in STATEMENTS},
    **{f"Django's cursor: {each}": by_a_cursor_of_django(each) for each in STATEMENTS},
    **{f"driver: {each}": by_the_driver(each) for each in STATEMENTS},
    "psycopg's commit": by_psycopg,
    "prepared": by_libpq("PREPARE TRANSACTION 'x'"),
}


@pytest.mark.parametrize("commit", COMMITS.values(), ids=COMMITS)
def test_handler_of_django_commits_by_no_means(django, commit):
    def meddler(event, connection):
        connection.cursor().execute(INSERT, [event.event_id])
        if event.event_id == "b":
            commit(connection)

    django.on(meddler, attempts=1)
    django.deliver("a", "b", "c")

    django.work()

    assert [row[2] for row in django.runs()] == ["done", "dead", "done"]
    assert django.effects() == ["a", "c"]


@pytest.mark.parametrize("commit", [by_a_cursor_of_django("COMMIT"), by_the_driver("/**/END")])
def test_handler_of_django_that_goes_on_behind_a_refused_commit_gives_up(django, commit):
    def meddler(event, connection):
        connection.cursor().execute(INSERT, [event.event_id])
        with contextlib.suppress(Exception):
            commit(connection)

    django.on(meddler, attempts=3)
    django.deliver("a")

    django.work()

    assert django.effects() == []
    assert django.runs() == [("a", "meddler", "dead", 1)]


def returns():
    """Return as if nothing were."""


def fails():
    raise LookupError("after all")


@pytest.mark.parametrize("end", [returns, fails])
def test_handler_of_django_that_begins_a_transaction_of_its_own_is_dead_at_once(django, end):
    def meddler(_, connection):
        libpq(connection, "ROLLBACK")
        libpq(connection, "BEGIN; INSERT INTO effects VALUES ('a'); COMMIT")
        libpq(connection, "BEGIN; INSERT INTO effects VALUES ('lost')")
        end()

    django.on(meddler, attempts=3)
    django.deliver("a")

    django.work()
    django.work()

    assert django.effects() == ["a"]
    assert django.runs() == [("a", "meddler", "dead", 1)]
    assert "what it committed stays" in errors(django)[0]


@pytest.mark.parametrize("end", [returns, fails])
def test_handler_of_django_that_commits_for_each_item_repeats_none(django, end):
    def meddler(_, connection):
        raw = connection.connection
        for item in ["refused", "a", "b"]:
            with contextlib.suppress(psycopg.Error):
                raw.execute(INSERT, [item])
                raw.commit()
        end()

    django.on(meddler, attempts=3)
    django.deliver("a")

    django.work()
    django.work()

    assert django.effects() == ["a", "b"]
    assert django.runs() == [("a", "meddler", "dead", 1)]
    assert "what it committed stays" in errors(django)[0]


@pytest.mark.parametrize("end", [returns, fails])
@pytest.mark.parametrize("left", ["", "BEGIN; INSERT INTO effects VALUES ('lost')"])
def test_batch_of_django_that_left_its_transaction_is_dead_as_a_whole(django, left, end):
    def meddler(_, connection):
        libpq(connection, "ROLLBACK")
        libpq(connection, "BEGIN; INSERT INTO effects VALUES ('all'); COMMIT")
        libpq(connection, left)
        end()

    django.on(meddler, attempts=3, batch=BatchSize(500, timedelta(0)))
    django.deliver("a", "b", "c")

    django.work()
    django.work()

    assert django.effects() == ["all"]
    assert {run[2] for run in django.runs()} == {"dead"}


SET = "SET CONSTRAINTS ALL IMMEDIATE"


@pytest.mark.parametrize(
    "look",
    [by_a_cursor_of_django(SET), by_libpq(f"{SET};"), by_libpq(f"DO $$ BEGIN {SET}; END $$")],
    ids=["cursor", "libpq", "block of code"],
)
def test_constraints_that_are_asked_early_do_no_harm_and_let_nobody_commit(django, look):
    def careful(event, connection):
        connection.cursor().execute(INSERT, [event.event_id])
        look(connection)
        look(connection)
        if event.event_id == "b":
            libpq(connection, "COMMIT")

    django.on(careful, attempts=1)
    django.deliver("a", "b", "c")

    django.work()

    assert django.effects() == ["a", "c"]
    assert [row[2] for row in django.runs()] == ["done", "dead", "done"]


def test_nothing_of_a_guard_is_left(django):
    def handler(event, connection):
        connection.cursor().execute(INSERT, [event.event_id])
        if event.event_id == "b":
            raise LookupError

    django.on(handler, attempts=1)
    django.deliver("a", "b")

    django.work()

    assert django.rows("SELECT count(*) FROM hookonce.guards") == [(0,)]


def leaves_the_guard_out():
    reword(
        functions,
        "INSERT INTO hookonce.guards DEFAULT VALUES RETURNING xact_id",
        "SELECT pg_current_xact_id()",
    )


def demands_no_row_at_the_end():
    reword(
        functions, "DELETE FROM hookonce.guards WHERE xact_id = pg_current_xact_id_if_assigned()", "SELECT 1"
    )
    replace(django_transaction._Opened, "_require_own", lambda _: None)  # noqa: SLF001


@pytest.mark.parametrize(
    ("mistake", "promise"),
    [
        (
            leaves_the_guard_out,
            lambda inbox: test_handler_of_django_commits_by_no_means(inbox, by_libpq("COMMIT")),
        ),
        (
            demands_no_row_at_the_end,
            lambda inbox: test_handler_of_django_that_begins_a_transaction_of_its_own_is_dead_at_once(
                inbox, returns
            ),
        ),
    ],
    ids=lambda each: each.__name__,
)
def test_planted_mistake_of_the_guard_is_caught(django, mistake, promise):
    with mistakes.made(mistake), pytest.raises(AssertionError):
        promise(django)
