"""A clock that leaps makes everything look old: nothing is forgotten until it has run steadily for a day."""

from datetime import UTC, datetime, timedelta

import pytest

from hookonce.jobs.alerts.conditions import ledger_conditions
from hookonce.jobs.maintenance.tasks import Pruner
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import partitions, steady_clock
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.maintenance.steady_clock import ClockHeld
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

DAY = timedelta(days=1)
KEPT = Retention(90 * DAY, 30 * DAY, 7 * DAY, 365 * DAY)


def prune(connection, **said):
    done = RetentionPass(KEPT, **said)
    list(done.steps(connection))
    return done.done


def leapt(connection, by):
    """Have the clock leap: to the store of looks, the last one was that long before."""
    connection.execute("UPDATE hookonce.clock SET looked_at = looked_at - %s::interval", [by])


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as opened:
        yield opened


@pytest.fixture
def looked(connection):
    """A ledger with an event of a hundred days ago and one of now, whose clock was looked at just now."""
    old, _ = (store(connection, [new_event(name)])["stripe", name].id for name in ("old", "new"))
    connection.execute(
        "UPDATE hookonce.events SET received_at = now() - interval '100 days' WHERE id = %s", [old]
    )
    connection.execute("DELETE FROM hookonce.queue WHERE event = %s", [old])
    steady_clock.look(connection)
    return connection


def test_steady_clock_prunes_as_ever(looked):
    assert prune(looked).events == 1


@pytest.mark.parametrize("by", [400 * DAY, -400 * DAY, DAY + timedelta(minutes=1)])
def test_leap_holds_what_deletes_by_age_in_both_directions(looked, caplog, by):
    leapt(looked, by)

    with pytest.raises(ClockHeld, match="--trust-clock"):
        prune(looked)

    assert "nothing is pruned" in caplog.text
    with pytest.raises(ClockHeld):  # the next look is no leap, and the hold goes on
        prune(looked)


@pytest.mark.parametrize("by", [2 * timedelta(hours=1), -2 * timedelta(hours=1)])
def test_database_far_from_its_host_holds(connection, by):
    found = steady_clock.look(connection, lambda: datetime.now(UTC) + by)

    assert found.held_since is not None


def test_pruning_goes_on_after_a_steady_day(looked):
    leapt(looked, 400 * DAY)
    steady_clock.look(looked)
    looked.execute("UPDATE hookonce.clock SET held_since = held_since - interval '1 day'")

    assert prune(looked).events == 1


def test_person_who_trusts_the_clock_ends_the_hold_and_is_audited(looked):
    leapt(looked, 400 * DAY)
    steady_clock.look(looked)

    steady_clock.trust(looked, "ann")

    assert prune(looked).events == 1
    assert looked.execute("SELECT who, action FROM hookonce.audit").fetchone() == ("ann", "trust clock")


def test_day_of_bodies_after_the_newest_event_is_never_dropped(looked):
    before = partitions.days(looked)

    done = RetentionPass(KEPT._replace(bodies=-400 * DAY), trusts_clock=True)
    list(done.steps(looked))

    newest = datetime.now(UTC).date()
    assert [day for day in before if day > newest] == [day for day in partitions.days(looked) if day > newest]
    assert done.done.days


def test_sweep_waits_and_the_alert_says_why(looked):
    leapt(looked, 400 * DAY)
    settings = Settings("", "", {})

    Pruner(settings).turn(looked)

    assert looked.execute("SELECT count(*) FROM hookonce.events").fetchone() == (2,)
    now = datetime.now(UTC)
    assert "--trust-clock" in ledger_conditions(looked, settings, {}, now, now)["clock", ""]


def test_pass_that_fails_is_audited_all_the_same(looked, monkeypatch):
    def fails(*_):
        raise looked.Error

    pruner = Pruner(Settings("", "", {}))
    monkeypatch.setattr(RetentionPass, "_expire", fails)
    with pytest.raises(looked.Error):
        pruner.turn(looked)
    monkeypatch.undo()
    pruner._rests_until = 0  # noqa: SLF001  ten minutes later

    pruner.turn(looked)

    assert looked.execute("SELECT action, detail->>'events' FROM hookonce.audit").fetchall() == [
        ("prune", "1")
    ]
