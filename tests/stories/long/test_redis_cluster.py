"""Ten thousand deliveries, each three times, through a window on six nodes: one is killed, and slots move meanwhile."""

import random
from concurrent.futures import ThreadPoolExecutor

from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.new_event import WINDOW, new_event
from tests.support.redis_cluster import SLOTS, RedisCluster

EVENTS, TIMES, LANES, BATCH = 10_000, 3, 3, 20
OF_DEAD_NODE = 1 / 3


def test_each_event_is_kept_once_while_nodes_die_and_slots_move(tmp_path, database_url, redis_url):
    deliveries = [f"evt_{n}" for n in range(EVENTS)] * TIMES
    chance = random.Random(1)  # noqa: S311  a story, no secret
    chance.shuffle(deliveries)
    with (
        RedisCluster.started(tmp_path / "cluster", replicas=True) as cluster,
        ThreadPoolExecutor(LANES) as threads,
    ):
        lanes = [
            threads.submit(stored, cluster.url, database_url, redis_url, deliveries[n::LANES])
            for n in range(LANES)
        ]
        moved = chance.sample(range(SLOTS), 50)
        for slot in moved:
            owner = cluster.owner_of(slot)
            cluster.move_slot(slot, next(port for port in cluster.ports[:3] if port != owner))
        cluster.kill(cluster.ports[0])
        told = [row for lane in lanes for row in lane.result(timeout=300)]

    accepted = sum(row.verdict is Verdict.ACCEPTED for row in told)
    hits = sum(not row.id for row in told)
    with connections.connect(database_url) as ledger:
        assert ledger.execute("SELECT count(*) FROM hookonce.events").fetchone() == (EVENTS,)
    assert (accepted, len(told)) == (EVENTS, EVENTS * TIMES)
    assert hits >= (1 - OF_DEAD_NODE) * EVENTS * (TIMES - 1) * 0.9


def stored(cluster_url, database_url, redis_url, ids):
    """Commit deliveries in batches; return what became of each."""
    found = []
    with connect(cluster_url) as client, connect(redis_url) as queue_client:
        queue = WorkQueue(queue_client)
        window = DedupWindow(client, CircuitBreaker(), pending=queue.pending)
        lane = Deduplicator(database_url, window, queue)
        for n in range(0, len(ids), BATCH):
            batch = [DeliveryEvents([new_event(each)], WINDOW) for each in ids[n : n + BATCH]]
            found += [rows[0] for rows in run(lane.commit(batch, IN_THREAD))]
        lane.close()
    return found
