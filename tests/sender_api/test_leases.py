"""Leases of lists and subscriptions: a process that has lost one writes nothing more under it."""

from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.intake.sender_api import reconciling
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import sender_api as ledger
from tests.sender_api.test_reconciling import GITHUB, KEYS, body_of, send
from tests.support.fake_senders import GitHub

MINUTE = timedelta(minutes=1)
STEAL = "UPDATE hookonce.listings SET token = gen_random_uuid(), lease_until = now() + interval '1 minute'"


def test_late_holder_of_a_list_writes_nothing_and_ends_no_lease_of_another(world):
    now = world.clock()
    late = ledger.lease_listing(world.connection, "github", now, timedelta(0))
    ledger.lease_listing(world.connection, "github", now, MINUTE)

    with pytest.raises(ledger.LeaseLost, match="another process compares the list of source 'github' by now"):
        ledger.update_listing(world.connection, late, problem="late")
    ledger.let_go(world.connection, late)

    assert world.rows("SELECT problem, lease_until > now() FROM hookonce.listings") == [(None, True)]


def test_late_holder_of_a_subscription_writes_nothing_and_ends_no_lease_of_another(world):
    now = world.clock()
    late = ledger.lease_subscription(world.connection, "mail", "me/messages", now, timedelta(0))
    ledger.lease_subscription(world.connection, "mail", "me/messages", now, MINUTE)

    ledger.update_subscription(world.connection, late, id="late")

    assert world.rows("SELECT id, lease_until > now() FROM hookonce.subscriptions") == [(None, True)]


@pytest.mark.parametrize("place", ["reconcile.noted", "reconcile.taken", "reconcile.moved"])
def test_pass_that_has_lost_its_lease_counts_nothing_and_leaves_the_other_its_lease(
    world, monkeypatch, place
):
    github = world.serve(GitHub(world.clock))
    github.door = lambda guid: world.deliver("github", body_of(guid), guid, "issues")
    world.configure(GITHUB, **KEYS)
    send(world, github, 3, failing={1})
    monkeypatch.setattr(reconciling, "reach", lambda at: at == place and world.connection.execute(STEAL))

    assert world.rounds.reconcile(world.connection, "github", eager=True) == "another process is at it"

    assert world.rows("SELECT * FROM hookonce.listed_days") == []
    assert world.rows("SELECT problem, lease_until > now() FROM hookonce.listings") == [(None, True)]


@pytest.mark.parametrize("error", [psycopg.DataError, SystemExit])
@pytest.mark.parametrize("statement", [STEAL, "SELECT pg_terminate_backend(%s)"])
def test_error_in_flight_is_raised_though_the_lease_or_the_connection_is_lost(
    world, monkeypatch, statement, error
):
    github = world.serve(GitHub(world.clock))
    world.configure(GITHUB, **KEYS)
    send(world, github, 2, failing={1})

    def lose(_):
        with connections.connect(world.settings.database_url) as other:
            other.execute(statement, [world.connection.info.backend_pid] if "%s" in statement else None)
        raise error

    monkeypatch.setattr(reconciling, "reach", lose)

    with pytest.raises(error):
        world.rounds.reconcile(world.connection, "github", eager=True)
