"""Through real Sentinels, which make another Valkey the primary."""

import contextlib
import subprocess
from types import SimpleNamespace

import pytest
import redis

from hookonce.jobs import worker
from hookonce.jobs.attempts.shared import Tally
from hookonce.receiver.config import server_urls
from hookonce.receiver.dev.embedded import binaries
from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis import client as redis_client
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.inbox import effect, inbox
from tests.support.new_event import WINDOW, new_event
from tests.support.ports import free_ports
from tests.support.waiting import until

__all__ = ["inbox"]

SERVICE = "inbox"
AWAY = (redis.RedisError, OSError)


@contextlib.contextmanager
def server(directory, port, *options):
    directory.mkdir()
    file = directory / "valkey.conf"
    file.write_text(f'port {port}\nbind 127.0.0.1\nsave ""\ndir {directory}\nrepl-diskless-sync-delay 0\n')
    process = subprocess.Popen([binaries.valkey(), file, *options], stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as client:
            until(client.ping, away=AWAY, process=process)
            yield client
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def ports():
    return free_ports(3)


@pytest.fixture
def sentinel(data_directory, ports):
    """A Sentinel that watches a primary and its replica."""
    first, second, third = ports
    with (
        server(data_directory / "one", first),
        server(data_directory / "two", second, "--replicaof", f"127.0.0.1 {first}") as replica,
        server(data_directory / "three", third, "--sentinel") as sentinel,
    ):
        until(lambda: replica.info("replication")["master_link_status"], "up", away=AWAY)
        sentinel.execute_command("SENTINEL", "MONITOR", SERVICE, "127.0.0.1", first, 1)
        for name, milliseconds in (("down-after-milliseconds", 200), ("failover-timeout", 3000)):
            sentinel.execute_command("SENTINEL", "SET", SERVICE, name, milliseconds)
        until(lambda: [each["flags"] for each in sentinel.sentinel_slaves(SERVICE)], ["slave"], away=AWAY)
        yield sentinel


@pytest.fixture
def url(ports):
    return f"redis+sentinel://127.0.0.1:1,127.0.0.1:{ports[2]}/{SERVICE}?db=3"


def commit(lane, event_id):
    return run(lane.commit([DeliveryEvents([new_event(event_id)], WINDOW)], IN_THREAD))


def test_window_and_bell_follow_the_sentinels_to_another_primary(inbox, sentinel, url, ports, database_url):
    inbox.on(effect)
    with connect(url) as client:
        lane = Deduplicator(database_url, DedupWindow(client, CircuitBreaker(limit=1000)), WorkQueue(client))
        before = [
            run(lane.commit([DeliveryEvents([new_event("a")], WINDOW)], IN_THREAD))[0][0].verdict
            for _ in range(2)
        ]
        with redis.Redis(port=ports[0]) as primary:
            primary.shutdown(nosave=True)
        until(lambda: primary_of(sentinel), str(ports[1]), away=AWAY, seconds=40)
        until(
            lambda: (
                run(lane.commit([DeliveryEvents([new_event("b")], WINDOW)], IN_THREAD))
                and remembered(ports[1], "b")
            ),
            away=AWAY,
        )
        lane.close()
        until(lambda: WorkQueue(client).notify() is None and WorkQueue(client).pending(), away=AWAY)

        assert before == [Verdict.ACCEPTED, Verdict.DUPLICATE]
        assert client.connection_pool.get_master_address()[1] == ports[1]


def primary_of(sentinel):
    """The port of the primary, as text: one number is not past another."""
    return sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1].decode()


def remembered(port, event_id):
    with redis.Redis(port=port, db=3) as client:
        return [key for key in client.keys("hookonce:*") if event_id.encode() in key.rpartition(b":")[2]]


@pytest.mark.usefixtures("sentinel")
def test_worker_answers_a_bell_that_sentinels_lead_to(url):
    rung = []
    listening = SimpleNamespace(run_due=rung.append, all_slots=(), tally=Tally())
    with connect(url) as client:
        WorkQueue(client).notify([7])

        worker.Worker(["hookonce"], connection=client, claimer=listening).work(
            burst=True, logging_level="CRITICAL"
        )

        assert rung == [[7]]
        assert WorkQueue(client).pending() == 0


@pytest.mark.parametrize(
    ("url", "is_readable"),
    [
        ("redis+sentinel://a/inbox", True),
        ("rediss+sentinel://user:p%40ss@a:1,[::1]:2/inbox?db=2&sentinel_password=x", True),
        ("redis+sentinel://a", False),
        ("redis+sentinel:///inbox", False),
        ("redis+sentinel://a:b/inbox", False),
        ("redis+sentinel://a/inbox?database=2", False),
        ("redis+sentinel://a/inbox?db=x", False),
        ("redis://:pass@host:6379/0", True),
        ("http://host", False),
    ],
)
def test_address_of_sentinels_is_read(url, is_readable):
    assert server_urls.is_redis(url) is is_readable


def test_client_of_sentinels_is_told_what_the_address_says():
    with redis_client.client("rediss+sentinel://me:p%40ss@a:1,b/inbox?db=2&sentinel_password=x") as client:
        told, manager = client.connection_pool.connection_kwargs, client.connection_pool.sentinel_manager

    assert (told["username"], told["password"], told["db"]) == ("me", "p@ss", 2)
    assert [each.connection_pool.connection_kwargs["port"] for each in manager.sentinels] == [1, 26379]
    assert manager.sentinel_kwargs["password"] == "x"
