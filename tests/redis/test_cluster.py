"""The window, limits and sign-in counts on a Redis Cluster of three real nodes; RQ's queue on a Redis beside it."""

from datetime import timedelta

import pytest
import redis

from hookonce.receiver.cli.doctor import servers
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis import sign_in_attempts
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.dedup_window import DedupWindow, WindowEntry, WindowPlace, WindowUnavailable
from hookonce.receiver.redis.rate_limits import Bucket, RateLimits
from hookonce.receiver.redis.work_queue import WorkQueue
from hookonce.receiver.source import Limit
from tests.support.new_event import WINDOW, new_event
from tests.support.redis_cluster import RedisCluster

EVENTS = 60
PLACE = WindowPlace("place", b"key")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with RedisCluster.started(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with connect(cluster.url) as client:
        yield client
        client.flushall(target_nodes="primaries")


@pytest.fixture
def lane(client, database_url, redis_url):
    with connect(redis_url) as queue_client:
        queue = WorkQueue(queue_client)
        window = DedupWindow(client, CircuitBreaker(), pending=queue.pending)
        lane = Deduplicator(database_url, window, queue)
        yield lane
        lane.close()


def commit(lane, events):
    stored = run(lane.commit([DeliveryEvents([event], WINDOW) for event in events], IN_THREAD))
    run(lane.rest(IN_THREAD))
    return [rows[0] for rows in stored]


def known_to_the_window(rows):
    """How many were answered without the ledger, which would have told their ids."""
    return sum(not row.id for row in rows)


def window_keys(client):
    return list(client.scan_iter("hookonce:*", target_nodes="primaries"))


def test_batch_over_all_nodes_is_known_to_the_window(lane, client):
    events = [new_event(f"evt_{n}") for n in range(EVENTS)]

    first, second = commit(lane, events), commit(lane, events)

    assert {row.verdict for row in first} == {Verdict.ACCEPTED}
    assert {row.verdict for row in second} == {Verdict.DUPLICATE}
    assert len(window_keys(client)) == EVENTS
    assert known_to_the_window(second) == EVENTS


def test_worker_is_notified_by_the_queue_s_own_redis(lane, redis_url):
    commit(lane, [new_event("a")])

    with connect(redis_url) as queue_client:
        assert WorkQueue(queue_client).pending() == 1


def test_slot_that_has_moved_is_followed(lane, client, cluster):
    events = [new_event(f"evt_{n}") for n in range(EVENTS)]
    commit(lane, events)
    slots = {client.keyslot(key) for key in window_keys(client)}
    for slot in list(slots)[: EVENTS // 4]:
        owner = cluster.owner_of(slot)
        cluster.move_slot(slot, next(port for port in cluster.ports if port != owner))

    again = commit(lane, events)

    assert known_to_the_window(again) == EVENTS


def test_slot_that_is_being_moved_is_asked_for_where_it_goes(client, cluster):
    key = "{shop:evt}"
    slot = client.keyslot(key)
    source = cluster.owner_of(slot)
    target = next(port for port in cluster.ports if port != source)
    ids = cluster.ids()
    with cluster.client(source) as giver, cluster.client(target) as taker:
        taker.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        giver.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])

        answers = [client.ask([(b"SET", key, "claimed", "NX", "GET")]) for _ in range(2)]

    cluster.give_slot(slot, source, target)
    assert answers == [[None], [b"claimed"]]


def test_window_is_forgotten_on_all_nodes(lane, client):
    commit(lane, [new_event(f"evt_{n}") for n in range(EVENTS)])

    assert DedupWindow(client, CircuitBreaker()).forget() == EVENTS
    assert window_keys(client) == []


def test_limits_of_a_source_lie_in_one_slot(client):
    limits = RateLimits(client, CircuitBreaker())
    buckets = [Bucket(f"source:shop:{name}", Limit(2, timedelta(minutes=1))) for name in ("rate", "quota")]

    waits = [limits.wait(buckets) for _ in range(3)]

    assert waits[:2] == [timedelta(0)] * 2
    assert timedelta(0) < waits[2] <= timedelta(minutes=1)
    assert len(window_keys(client)) == len(buckets)


def test_attempts_to_sign_in_are_counted(client):
    waits = [sign_in_attempts.take(client, "192.0.2.1", 2, timedelta(minutes=1)) for _ in range(3)]

    assert [wait > timedelta(0) for wait in waits] == [False, False, True]


def test_doctor_says_what_it_found(cluster):
    (finding,) = servers.window_server(cluster.url)

    assert finding == (
        "ok",
        "window",
        "a cluster of 3 nodes, 3 of them primaries, 16384 of 16384 slots served",
    )


def test_doctor_says_that_no_node_answers():
    (finding,) = servers.window_server("redis+cluster://127.0.0.1:1")

    assert finding.level == "fail"
    assert "WINDOW_REDIS_URL" in finding.text


def test_cluster_in_the_place_of_the_queue_is_refused(database_url):
    with pytest.raises(ConfigError, match="WINDOW_REDIS_URL"):
        load_settings({"DATABASE_URL": database_url, "REDIS_URL": "redis+cluster://127.0.0.1:7000"})


@pytest.mark.parametrize(
    "url", ["redis+cluster://", "redis+cluster://host:port", "redis+cluster://a/1", "http://a"]
)
def test_address_that_is_none_is_told(url, database_url, redis_url):
    with pytest.raises(ConfigError, match="correct WINDOW_REDIS_URL"):
        load_settings({"DATABASE_URL": database_url, "REDIS_URL": redis_url, "WINDOW_REDIS_URL": url})


def test_receiver_keeps_its_window_on_the_cluster(cluster, open_sources, client):
    sources = open_sources(WINDOW_REDIS_URL=cluster.url)

    answers = [sources.status({"id": f"evt_{n}", "type": "paid"}) for n in (1, 1, 2, 2)]

    assert answers == ["accepted", "duplicate"] * 2
    assert len(window_keys(client)) == 2


def test_node_that_is_away_costs_what_it_knew_and_nothing_else(tmp_path, database_url, redis_url):
    with (
        RedisCluster.started(tmp_path / "cluster") as cluster,
        connect(cluster.url) as client,
        connect(redis_url) as queue_client,
    ):
        window = DedupWindow(client, CircuitBreaker())
        lane = Deduplicator(database_url, window, WorkQueue(queue_client))
        events = [new_event(f"evt_{n}") for n in range(EVENTS)]
        commit(lane, events)
        dead = cluster.ports[0]
        lost = sum(cluster.owner_of(client.keyslot(key)) == dead for key in window_keys(client))
        cluster.kill(dead)

        again = commit(lane, events)

        lane.close()
    assert {row.verdict for row in again} == {Verdict.DUPLICATE}
    assert known_to_the_window(again) == EVENTS - lost


def test_cluster_that_is_away_is_told():
    client = connect("redis+cluster://127.0.0.1:1")
    window = DedupWindow(client, CircuitBreaker())

    with pytest.raises(WindowUnavailable):
        run(window.claim(PLACE, [WindowEntry("shop", "evt", b"")]))


def test_slot_without_a_node_is_unknown_and_the_others_are_answered(client, cluster):
    keys = [f"{{shop:{n}}}" for n in range(EVENTS)]
    client.ask([(b"SET", key, "claimed", "NX", "GET") for key in keys])
    slot = client.keyslot(keys[0])
    owner = cluster.owner_of(slot)
    client.nodes_manager.slots_cache.pop(slot)

    answers = client.ask([(b"SET", key, "claimed", "NX", "GET") for key in keys])

    assert isinstance(answers[0], redis.ConnectionError)
    assert [each for each in answers if isinstance(each, bytes)] == [b"claimed"] * (EVENTS - 1)
    assert cluster.owner_of(slot) == owner


def test_queue_s_redis_that_is_away_leaves_the_window_on(client, database_url):
    def away():
        raise RedisUnavailable("away")

    breaker = CircuitBreaker(limit=1)
    window = DedupWindow(client, breaker, pending=away)
    with connect("redis://127.0.0.1:1") as queue_client:
        lane = Deduplicator(database_url, window, WorkQueue(queue_client))
        events = [new_event(f"evt_{n}") for n in range(EVENTS)]
        commit(lane, events)

        assert known_to_the_window(commit(lane, events)) == EVENTS
        lane.close()
    assert not breaker.is_open
