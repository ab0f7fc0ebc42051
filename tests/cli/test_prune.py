from datetime import UTC, datetime, timedelta

import pytest

from hookonce.jobs.maintenance import tasks
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.desk import maintenance
from hookonce.receiver.ledger.maintenance import partitions, retention, steady_clock
from hookonce.receiver.ledger.replay import events
from hookonce.receiver.ledger.stats import event_counts, totals

OLD = datetime.now(UTC).replace(hour=12) - timedelta(days=100)
DAY = f"bodies_{OLD:%Y%m%d}"


@pytest.fixture
def aged(stored, ledger):
    """An event, its body and its runs as they would be, had it come 100 days ago."""
    partitions.make_partition(ledger, OLD.date())

    def put(event_id, status):
        number = stored(event_id, status=status, runs=[("credit", "done", 1)])
        ledger.execute("UPDATE hookonce.events SET received_at = %s WHERE id = %s", [OLD, number])
        ledger.execute("UPDATE hookonce.bodies SET received_at = %s WHERE event = %s", [OLD, number])
        ledger.execute("UPDATE hookonce.queue SET received_at = %s WHERE event = %s", [OLD, number])
        return number

    return put


@pytest.fixture
def left(ledger):
    def read():
        rows = ledger.execute("SELECT id FROM hookonce.event_states ORDER BY id").fetchall()
        return [row[0] for row in rows], DAY in partitions.days(ledger).values()

    return read


@pytest.mark.usefixtures("inbox")
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


@pytest.mark.usefixtures("inbox")
def test_prune_spares_an_event_that_is_replayed_while_it_looks(aged, left, ledger, monkeypatch):
    number = aged("replayed", "done")
    delete = retention.delete_events
    horizons = retention.Retention.of(load_settings(need_secrets=False))._replace(bodies=timedelta(days=200))

    def delete_after_the_replay(connection, ids):
        list(events.replay(ledger, [number], "a person", again=True))
        return delete(connection, ids)

    monkeypatch.setattr(retention, "delete_events", delete_after_the_replay)
    list(retention.RetentionPass(horizons).steps(ledger))

    assert left()[0] == [number]


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize("status", ["received", "running", "waiting", "held"])
def test_prune_keeps_a_day_while_one_of_its_events_is_yet_to_run(hookonce, aged, left, status):
    kept = aged("kept", status)
    aged("gone", "done")

    pruned = hookonce("prune")

    assert left() == ([kept], True)
    assert f"yet to be handled: {DAY}" in pruned.err


@pytest.mark.usefixtures("inbox")
def test_prune_only_says_what_would_go_on_a_dry_run(hookonce, aged, left):
    number = aged("evt_1", "done")

    pruned = hookonce("prune", "--dry-run")

    assert "to delete: 1 event" in pruned.err
    assert left() == ([number], True)


@pytest.mark.usefixtures("inbox")
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


def test_prune_keeps_what_the_configuration_says(inbox, hookonce, aged, left):
    path = inbox / "hookonce.toml"
    path.write_text('[receiver]\nkeep_events = "101d"\nkeep_bodies = "99d"\n' + path.read_text())
    number = aged("evt_1", "done")

    hookonce("prune")

    assert left() == ([number], False)


@pytest.mark.usefixtures("inbox")
def test_prune_gives_way_when_the_bodies_are_in_use(hookonce, aged, left, ledger, monkeypatch):
    monkeypatch.setattr(maintenance, "MAX_TRIES", 1)
    aged("evt_1", "done")

    with ledger.transaction():
        ledger.execute("SELECT FROM hookonce.bodies")
        pruned = hookonce("prune")

    assert pruned.code == 3
    assert f"busy, run again: {DAY}" in pruned.err
    assert left() == ([], True)


def test_prune_counts_what_it_deleted_once(inbox, hookonce, aged, ledger):
    for number in range(3):
        aged(f"evt_{number}", "ignored")
    ledger.execute(
        "INSERT INTO hookonce.audit (at, who, action, subject, detail) VALUES (%s, '', '', '', '{}')", [OLD]
    )
    (inbox / "hookonce.toml").write_text('[receiver]\nkeep_audit = "99d"\n')
    event_counts.recount(ledger)
    event_counts.advance(ledger, event_counts.mark(ledger))

    pruned = hookonce("prune", "--json")

    assert [pruned.documents[0][key] for key in ("events", "audit")] == [3, 1]
    assert [(each.source, each.status, each.count) for each in totals.event_sums(ledger)] == []


@pytest.mark.usefixtures("inbox")
def test_sweep_prunes_in_steps_and_goes_on_where_it_stopped(aged, stored, ledger, monkeypatch):
    monkeypatch.setattr(tasks, "PRUNE_STEP", 2)
    monkeypatch.setattr(tasks, "PRUNE_BUDGET", tasks.timedelta(0))
    held = aged("held", "held")
    for number in range(5):
        aged(f"evt_{number}", "done")
    young = stored("young", status="done")
    sweep = tasks.Pruner(load_settings(need_secrets=False))

    left = []
    while not ledger.execute("SELECT FROM hookonce.audit").rowcount:
        sweep.turn(ledger)
        left.append(ledger.execute("SELECT count(*) FROM hookonce.event_states").fetchone()[0])

    assert sorted(set(left), reverse=True) == [7, 6, 4, 2]
    assert ledger.execute("SELECT array_agg(id ORDER BY id) FROM hookonce.event_states").fetchone()[0] == [
        held,
        young,
    ]
    assert ledger.execute("SELECT who, action FROM hookonce.audit").fetchall() == [("sweep", "prune")]


def test_sweep_prunes_nothing_when_told_not_to(inbox, aged, ledger):
    (inbox / "hookonce.toml").write_text("[receiver]\nauto_prune = false\n")
    aged("evt_1", "done")

    tasks.Pruner(load_settings(need_secrets=False)).turn(ledger)

    assert ledger.execute("SELECT FROM hookonce.event_states").rowcount == 1


def test_prune_refuses_a_horizon_below_the_senders_retries(inbox, hookonce):
    (inbox / "hookonce.toml").write_text('[receiver]\nkeep_events = "2d"\n')

    pruned = hookonce("prune")

    assert pruned.code == 78
    assert "expected 3d or more" in pruned.err
