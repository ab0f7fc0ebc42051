"""A handler that takes away what is prepared in its session harms neither its own runs nor others'."""

import psycopg
import pytest
from sqlalchemy import text

from hookonce.receiver.ledger.database.round_trip import PreparingConnection
from tests.support.inbox import effect

EVENTS = [f"evt_{n:02}" for n in range(12)]
SEEN = {
    "plain": lambda tx: tx.execute(text("DEALLOCATE ALL")),
    "behind a comment": lambda tx: tx.exec_driver_sql("/* x */ -- y\n deallocate all"),
    "behind a comment in a comment": lambda tx: tx.exec_driver_sql("/* /* */ */ DEALLOCATE ALL"),
    "behind a carriage return": lambda tx: tx.exec_driver_sql("-- x\rDEALLOCATE ALL"),
    "behind much else": lambda tx: tx.exec_driver_sql(f"-- {'x' * 5000}\nDEALLOCATE ALL"),
    "by the cursor of a result": lambda tx: tx.execute(text("SELECT 1")).cursor.execute("DEALLOCATE ALL"),
    "by the driver": lambda tx: tx.connection.driver_connection.execute("DEALLOCATE ALL"),
    "by a block of code": lambda tx: tx.exec_driver_sql("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"),
    "after a rollback to a savepoint": lambda tx: tx.begin_nested().rollback(),
}


@pytest.fixture(autouse=True)
def trusting(monkeypatch):
    monkeypatch.setattr(PreparingConnection, "is_betrayed", False)


def deal_with(inbox, forget, rounds=6):
    def handle(event, tx):
        effect(event, tx)
        forget(tx)

    inbox.on(handle, attempts=3)
    inbox.deliver(*EVENTS)
    for _ in range(rounds):
        inbox.work()
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")


@pytest.mark.parametrize("way", SEEN)
def test_deallocation_that_can_be_seen_costs_nothing(inbox, way):
    deal_with(inbox, SEEN[way])

    assert inbox.effects() == EVENTS
    assert {run[2:] for run in inbox.runs()} == {("done", 1)}


def test_deallocation_inside_a_function_costs_an_attempt_or_two_in_a_process(inbox):
    with psycopg.connect(inbox.settings.database_url) as connection:
        connection.execute(
            "CREATE FUNCTION forget() RETURNS int LANGUAGE plpgsql AS "
            "$f$ BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN 1; END $f$"
        )

    deal_with(inbox, lambda tx: tx.execute(text("SELECT forget()")))

    assert inbox.effects() == EVENTS
    assert {run[2] for run in inbox.runs()} == {"done"}
    # Found out at the end of a run, and by a claim.
    assert sum(attempts - 1 for *_, attempts in inbox.runs()) <= 2


TRIGGER = """
CREATE FUNCTION deny() RETURNS trigger LANGUAGE plpgsql AS
$f$ BEGIN RAISE EXCEPTION 'denied' USING ERRCODE = '26000'; END $f$;
CREATE CONSTRAINT TRIGGER denies AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION deny()
"""


@pytest.mark.parametrize("statement", ["SELECT 1", "DO $$ BEGIN END $$"])
def test_trigger_that_fails_as_a_deallocation_does_uses_attempts_up(inbox, statement):
    def handle(event, tx):
        effect(event, tx)
        tx.exec_driver_sql(statement)

    inbox.connection.execute(TRIGGER)
    inbox.on(handle, attempts=2)
    inbox.deliver("a")

    for _ in range(4):
        inbox.work()
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")

    assert inbox.runs() == [("a", "handle", "dead", 2)]
    assert "denied" in inbox.rows("SELECT error FROM hookonce.failures")[0][0]
