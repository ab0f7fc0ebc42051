"""Who has lost a run writes nothing more, whatever its transaction is like, and whatever it is at."""

import contextlib

import psycopg
import pytest
from sqlalchemy import text

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.attempts.heartbeat import Heartbeat
from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.receiver.ledger.runs import takeover
from tests.support import claiming
from tests.support.django_project import entry
from tests.support.inbox import effect, inbox
from tests.support.waiting import until

__all__ = ["entry", "inbox"]

LEVELS = (None, "repeatable read", "serializable")


def take_away(inbox):
    inbox.lapse()
    takeover.take_over(inbox.connection)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("by", ["the driver", "text"])
def test_attempt_whose_run_was_taken_over_writes_nothing_at_any_isolation(inbox, level, by):
    def overtaken(event, tx):
        tx.execute(text("SELECT count(*) FROM effects"))
        if event.attempt == 1 and not seen:
            seen.append(event)
            take_away(inbox)
        if by == "the driver":
            tx.connection.driver_connection.execute("SELECT 1")
        effect(event, tx)

    seen = []
    inbox.on(overtaken, isolation=level)
    inbox.deliver("a", "b")

    until(lambda: (inbox.work(), inbox.rows("SELECT count(*) FROM hookonce.queue"))[1], [(0,)])

    assert inbox.effects() == ["a", "b"]
    assert [row[2:] for row in inbox.runs()] == [("done", 1)] * 2


@pytest.mark.parametrize(
    "statement",
    [
        *(
            "SET LOCAL statement_timeout = 20",
            "SET LOCAL lock_timeout = 1",
            "SET LOCAL search_path = elsewhere",
        ),
        *("SET LOCAL ROLE pg_monitor", "SET LOCAL session_replication_role = replica"),
        *("SET LOCAL default_transaction_read_only = on", "SET LOCAL synchronous_commit = off"),
        *("SET LOCAL standard_conforming_strings = off", "SET LOCAL bytea_output = escape"),
        *("SET LOCAL client_encoding = 'LATIN1'", "SET LOCAL DateStyle = 'German'"),
        *("SET LOCAL IntervalStyle = 'iso_8601'", "SET LOCAL TimeZone = 'Asia/Tokyo'"),
        *("SET LOCAL idle_in_transaction_session_timeout = 0", "SET CONSTRAINTS ALL DEFERRED"),
    ],
)
@pytest.mark.parametrize("by", ["text", "the driver", "Django"])
@pytest.mark.usefixtures("entry")
def test_run_is_ended_whatever_its_handler_has_set_for_its_transaction(inbox, statement, by):
    def sets(event, tx):
        effect(event, tx)
        if by == "the driver":
            tx.connection.driver_connection.execute(statement)
        else:
            tx.exec_driver_sql(statement)

    def sets_in_django(event, connection):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO effects VALUES (%s)", [event.event_id])
            cursor.execute(statement)

    inbox.connection.execute("CREATE SCHEMA elsewhere")
    if by == "Django":
        inbox.transactions = DjangoTransactions
    inbox.on(sets_in_django if by == "Django" else sets)
    inbox.deliver("a", "b")

    inbox.work()

    assert [row[2:] for row in inbox.runs()] == [("done", 1)] * 2
    assert inbox.effects() == ["a", "b"]


def test_constraint_that_is_broken_at_the_end_is_a_failed_attempt(inbox):
    def breaks(event, tx):
        effect(event, tx)
        if event.event_id == "b":
            effect(event, tx)

    inbox.connection.execute("ALTER TABLE effects ADD UNIQUE (event) DEFERRABLE INITIALLY DEFERRED")
    inbox.on(breaks, attempts=2)
    inbox.deliver("a", "b", "c")

    until(lambda: (inbox.work(), inbox.rows("SELECT count(*) FROM hookonce.queue"))[1], [(0,)])

    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("dead", 2), ("done", 1)]
    assert inbox.effects() == ["a", "c"]


def test_nothing_more_of_a_claim_is_started_that_another_has_taken_over(inbox):
    inbox.on(effect)
    inbox.deliver("a", "b")
    runs = claiming.claim(inbox.connection, inbox.registry).runs
    held = OwnClaims()
    held.add(runs)
    take_away(inbox)

    Heartbeat(held, lambda: contextlib.nullcontext(inbox.connection)).beat()

    assert not any(map(held.holds, runs))


def test_claim_is_worked_though_what_others_lost_can_not_be_taken_over(inbox, monkeypatch, caplog):
    def away(*_):
        raise psycopg.OperationalError("gone")

    inbox.on(effect)
    inbox.deliver("a")
    claiming.claim(inbox.connection, inbox.registry)
    inbox.lapse()
    inbox.deliver("b")
    with monkeypatch.context() as patch, contextlib.suppress(psycopg.OperationalError):
        patch.setattr(takeover, "take_over", away)
        inbox.work()

    assert [row[2:] for row in inbox.runs()] == [("running", 1), ("done", 1)]
    assert "what others have lost was not taken over: OperationalError" in caplog.text
    assert inbox.drains[0].executor.shared.claims.tokens == []


def test_row_that_a_stranger_has_locked_is_left_in_its_claim_and_nobody_is_dead(inbox):
    inbox.on(effect)
    inbox.deliver("a", "b")
    run = claiming.claim(inbox.connection, inbox.registry).runs[0]
    inbox.lapse()

    with psycopg.connect(inbox.settings.database_url) as stranger:
        stranger.execute("SELECT FROM hookonce.queue WHERE event = %s FOR SHARE", [run.event.id])
        inbox.work()
        assert inbox.runs() == [("a", "effect", "running", 1), ("b", "effect", "done", 1)]
        stranger.execute("SELECT 1")
    inbox.lapse()
    until(lambda: (inbox.work(), inbox.rows("SELECT count(*) FROM hookonce.queue"))[1], [(0,)])

    assert inbox.runs() == [("a", "effect", "done", 1), ("b", "effect", "done", 1)]
