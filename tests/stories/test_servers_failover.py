"""A standby takes over that has not got what the old primary promised last: the sender's retry is stored again.

Asynchronous replicas lose what they lose. What must not happen is that a key in Redis, written for the old
primary, answers the retry as a duplicate: see docs/decisions/0007.
"""

import contextlib
import itertools
import os
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from hookonce.receiver.dev.embedded import Postgres, binaries
from hookonce.receiver.ledger.database import migrate
from tests.support.stories.proxy import Proxy
from tests.support.stories.stack import Stack, running, stay_away, until
from tests.support.waiting import DeadlineMissed

SOON = 1
"""Seconds after the promotion within which the sender comes again."""


@pytest.fixture
def pair(data_directory):
    """A primary and its streaming standby."""
    primary = Postgres.start(data_directory / "old", durable=False)
    migrate.upgrade(primary.url)
    account = primary.account
    home = data_directory / "new" / "postgres"
    home.mkdir(parents=True, mode=0o711)
    home.parent.chmod(0o711)
    if account:
        os.chown(home, account.uid, account.gid)
    backup = [
        binaries.postgres(account) / "pg_basebackup",
        "--pgdata",
        home / "data",
        "--dbname",
        primary.url,
    ]
    subprocess.run(
        [*backup, "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream"],
        user=account.uid if account else None,
        group=account.gid if account else None,
        cwd="/",
        check=True,
        timeout=60,
    )
    standby = Postgres.start(data_directory / "new", durable=False)
    yield primary, standby
    standby.stop()
    primary.stop()


@pytest.fixture
def directory():
    """A directory whose sockets have short names."""
    with tempfile.TemporaryDirectory(prefix="failover-") as directory:
        yield Path(directory)


def cut_off(primary, standby):
    """End replication when the standby has all there is so far; from now on the primary promises alone."""
    with sql(primary) as old, sql(standby) as new:
        (position,) = old.execute("SELECT pg_current_wal_lsn()").fetchone()
        behind = "SELECT pg_last_wal_replay_lsn() < %s::pg_lsn"
        until(lambda: not new.execute(behind, [position]).fetchone()[0], what="the replay")
        new.execute("ALTER SYSTEM SET primary_conninfo = ''")
        new.execute("SELECT pg_reload_conf()")
        senders = "SELECT count(*) FROM pg_stat_replication"
        until(lambda: old.execute(senders).fetchone()[0], 0, what="the end of replication")


def promote(standby):
    with sql(standby) as new:
        assert new.execute("SELECT pg_promote()").fetchone() == (True,)
    return time.monotonic()


@contextlib.contextmanager
def sql(server):
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("road", ["of two hosts", pytest.param("through a switch", marks=pytest.mark.long)])
def test_event_that_only_the_old_primary_had_is_stored_again_and_handled_once(
    pair, directory, redis_url, road
):
    primary, standby = pair
    with (
        ROADS[road](primary, standby, directory) as (url, fail_over),
        running(Stack(directory, url, redis_url, web=1, workers=1).make_effects()) as stack,
    ):
        stack.insist(stack.event())
        kept = stack.history.deliveries[:]
        lost = stack.event()
        stack.rest()
        cut_off(primary, standby)
        stack.insist(lost)
        stack.rest()
        assert stack.insist(lost.again()).verdicts == {"evt_2": "duplicate"}

        fail_over()
        promoted = promote(standby)
        stack.history.faults += 1  # what the old primary alone knew of is begun anew
        stack.history.deliveries[:] = kept  # no ledger can keep what was promised by the one that is gone
        answer = stack.insist(lost.again())
        first = stack.since(promoted)[0]

        if first.at - promoted > SOON:
            raise DeadlineMissed(f"the sender came only after {first.at - promoted:.1f} s")
        assert answer.verdicts == {"evt_2": "accepted"}
        stack.insist(stack.event())
        assert stack.insist(lost.again()).verdicts == {"evt_2": "duplicate"}
        assert stack.violations() == []


@contextlib.contextmanager
def two_hosts(primary, standby, _directory):
    """A connection string with both; the old primary dies."""
    hosts = f"{primary.socket.parent},{standby.socket.parent}"
    yield (
        f"postgresql://hookonce@/hookonce?host={hosts}&port=5432,5432&target_session_attrs=read-write",
        primary.kill,
    )


@contextlib.contextmanager
def switch(primary, standby, directory):
    """A place in the network that leads to the other of the two from now on, which live on where nobody sees it."""
    path = directory / ".s.PGSQL.5432"
    servers = itertools.cycle([primary, standby])
    proxies = [Proxy(str(next(servers).socket), path)]

    def turn():
        proxies[-1].close()
        proxies.append(Proxy(str(next(servers).socket), path))

    yield f"postgresql://hookonce@/hookonce?host={directory}", turn
    proxies[-1].close()


@pytest.mark.long
def test_senders_are_told_to_come_again_while_the_road_leads_to_a_standby(pair, directory, redis_url):
    primary, standby = pair
    with (
        switch(primary, standby, directory) as (url, turn),
        running(Stack(directory, url, redis_url, web=1, workers=1).make_effects()) as stack,
    ):
        stack.insist(stack.event())
        with stack.load():
            turn()
            began = time.monotonic()
            until(lambda: stack.refused(began), what="a refusal")
            stay_away(began)
            assert not any(answer.is_new for answer in stack.since(began))
            turn()
        stack.history.faults += len(stack.workers) + len(stack.receivers)

        assert stack.violations() == []
        print(stack.figures(began))  # noqa: T201  for `make soak`


ROADS = {"of two hosts": two_hosts, "through a switch": switch}
