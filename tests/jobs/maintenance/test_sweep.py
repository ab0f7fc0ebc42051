import contextlib

import psycopg
import pytest
import redis

from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.receiver.ledger.maintenance import partitions


@pytest.fixture
def sweep(inbox):
    with contextlib.closing(Sweep(inbox.settings)) as sweep:
        yield sweep


@pytest.fixture
def rings(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        yield lambda: client.llen("rq:queue:hookonce")


def test_sweep_rings_for_a_due_event(inbox, sweep, rings):
    inbox.deliver("a")

    assert sweep.once() == 1
    assert rings() == 1


def test_sweep_does_not_ring_twice(inbox, sweep, rings):
    inbox.deliver("a")

    sweep.once()
    sweep.once()

    assert rings() == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE hookonce.queue SET due_at = now() + interval '1 hour'",
        "UPDATE hookonce.queue SET waits = 'held'",
        "INSERT INTO hookonce.pauses (kind, name) VALUES ('source', 'stripe')",
    ],
)
def test_sweep_leaves_alone_what_is_not_due(inbox, sweep, rings, change):
    inbox.deliver("a")
    inbox.connection.execute(change)

    assert sweep.once() == 0
    assert rings() == 0


def test_sweep_makes_the_partitions_of_the_coming_days(inbox, sweep):
    last = inbox.rows(
        "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'hookonce.bodies'::regclass"
    )
    inbox.connection.execute(f"DROP TABLE {last[0][0]}")

    sweep.once()

    query = (
        "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'hookonce.bodies'::regclass"
    )
    assert inbox.rows(query) == last


def test_sweep_rings_even_if_it_may_make_no_partitions(inbox, sweep, rings, monkeypatch):
    def refused(_):
        raise psycopg.errors.InsufficientPrivilege

    monkeypatch.setattr(partitions, "create_partitions", refused)
    inbox.deliver("a")

    sweep.once()

    assert rings() == 1


def test_sweep_goes_on_when_its_connection_was_cut(inbox, sweep, rings):
    sweep.once()
    inbox.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname = current_database()"
    )
    inbox.deliver("a")

    sweep.once()
    sweep.once()

    assert rings() == 1


def test_sweep_looks_for_the_primary_when_it_has_met_a_standby(inbox, sweep):
    name = inbox.connection.info.dbname
    inbox.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    sweep.once()
    inbox.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")

    sweep.once()

    assert inbox.rows("SELECT evaluated_at > 'epoch' FROM hookonce.watching") == [(True,)]
