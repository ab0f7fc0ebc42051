import contextlib

import psycopg
import pytest
import redis

from jobs.sweep import Sweep
from receiver.ledger import upkeep


@pytest.fixture
def sweep(desk):
    with contextlib.closing(Sweep(desk.settings)) as sweep:
        yield sweep


@pytest.fixture
def rings(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        yield lambda: client.llen("rq:queue:hookonce")


def test_sweep_rings_for_a_due_event(desk, sweep, rings):
    desk.deliver("a")

    assert sweep.once() == 1
    assert rings() == 1


def test_sweep_does_not_ring_twice(desk, sweep, rings):
    desk.deliver("a")

    sweep.once()
    sweep.once()

    assert rings() == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET due_at = now() + interval '1 hour'",
        "UPDATE events SET due_at = NULL, status = 'done'",
        "INSERT INTO pauses (kind, name) VALUES ('source', 'stripe')",
    ],
)
def test_sweep_leaves_alone_what_is_not_due(desk, sweep, rings, change):
    desk.deliver("a")
    desk.connection.execute(change)

    assert sweep.once() == 0
    assert rings() == 0


def test_sweep_makes_the_partitions_of_the_coming_days(desk, sweep):
    last = desk.rows(
        "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'bodies'::regclass"
    )
    desk.connection.execute(f"DROP TABLE {last[0][0]}")

    sweep.once()

    query = "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'bodies'::regclass"
    assert desk.rows(query) == last


def test_sweep_rings_even_if_it_may_make_no_partitions(desk, sweep, rings, monkeypatch):
    def refused(_):
        raise psycopg.errors.InsufficientPrivilege

    monkeypatch.setattr(upkeep, "create_partitions", refused)
    desk.deliver("a")

    sweep.once()

    assert rings() == 1


def test_sweep_goes_on_when_its_connection_was_cut(desk, sweep, rings):
    sweep.once()
    desk.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname = current_database()"
    )
    desk.deliver("a")

    sweep.once()
    sweep.once()

    assert rings() == 1


def test_sweep_looks_for_the_primary_when_it_has_met_a_standby(desk, sweep):
    name = desk.connection.info.dbname
    desk.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    sweep.once()
    desk.connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")

    sweep.once()

    assert desk.rows("SELECT evaluated_at > 'epoch' FROM watching") == [(True,)]
