from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.desk import maintenance
from hookonce.receiver.ledger.maintenance import partitions, steady_clock

OLD = datetime.now(UTC).replace(hour=12) - timedelta(days=100)
DAY = f"bodies_{OLD:%Y%m%d}"

pytestmark = pytest.mark.usefixtures("inbox")


@pytest.fixture
def aged(stored, ledger):
    """A function: an event and its body as they would be, had it come 100 days ago."""
    partitions.make_partition(ledger, OLD.date())

    def put(event_id, status):
        number = stored(event_id, status=status, runs=[("credit", "done", 1)])
        for table, key in (("events", "id"), ("bodies", "event"), ("queue", "event")):
            statement = f"UPDATE hookonce.{table} SET received_at = %s WHERE {key} = %s"  # noqa: S608
            ledger.execute(statement, [OLD, number])
        return number

    return put


@pytest.fixture
def left(ledger):
    def read():
        rows = ledger.execute("SELECT id FROM hookonce.event_states ORDER BY id").fetchall()
        return [row[0] for row in rows], DAY in partitions.days(ledger).values()

    return read


def test_prune_deletes_what_has_ended_and_outlived_its_horizon(hookonce, stored, aged, left, ledger):
    for status in ("done", "ignored", "dead"):
        aged(status, status)
    young = stored("young", status="done")
    ledger.execute(
        "INSERT INTO hookonce.rejected VALUES (DEFAULT, %s, 'stripe', 'stale', '', '{}', '')", [OLD]
    )

    pruned = hookonce("prune", "--json")

    assert pruned.code == 0
    assert left() == ([young], False)
    assert [pruned.documents[0][key] for key in ("events", "rejected", "days")] == [3, 1, [DAY]]
    assert ledger.execute("SELECT DISTINCT event FROM hookonce.runs").fetchall() == [(young,)]
    assert ledger.execute("SELECT action FROM hookonce.audit").fetchall() == [("prune",)]


def test_prune_says_which_day_stays_and_only_that_on_a_dry_run(hookonce, aged, left):
    numbers = [aged("kept", "held"), aged("gone", "done")]

    tried = hookonce("prune", "--dry-run")
    before = left()
    pruned = hookonce("prune")

    assert ("to delete: 1 event" in tried.err, before) == (True, (numbers, True))
    assert f"yet to be handled: {DAY}" in pruned.err
    assert left() == (numbers[:1], True)


def test_dry_run_with_trust_clock_shows_the_plan_and_leaves_the_clock_as_it_is(hookonce, aged, left, ledger):
    number = aged("evt_1", "done")
    steady_clock.look(ledger)
    ledger.execute("UPDATE hookonce.clock SET held_since = now()")

    held, tried = hookonce("prune", "--dry-run"), hookonce("prune", "--dry-run", "--trust-clock")

    assert (held.code, "--trust-clock" in held.err) == (1, True)
    assert (tried.code, "to delete: 1 event" in tried.err) == (0, True)
    assert steady_clock.held_since(ledger) is not None
    assert left() == ([number], True)
    assert hookonce("prune", "--trust-clock").code == 0
    assert (steady_clock.held_since(ledger), left()) == (None, ([], False))


def test_prune_gives_way_when_the_bodies_are_in_use(hookonce, aged, left, ledger, monkeypatch):
    monkeypatch.setattr(maintenance, "MAX_TRIES", 1)
    aged("evt_1", "done")

    with ledger.transaction():
        ledger.execute("SELECT FROM hookonce.bodies")
        pruned = hookonce("prune")

    assert pruned.code == 3
    assert f"busy, run again: {DAY}" in pruned.err
    assert left() == ([], True)
