"""A standby takes over between two parts of one batch: what the old primary alone had must not pass for stored."""

from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.intake import deduplication
from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.stories.test_servers_failover import cut_off, pair, promote, two_hosts
from tests.support.new_event import WINDOW, new_event

__all__ = ["pair"]


@pytest.mark.parametrize("together", [True, False])
def test_retry_of_what_only_the_old_primary_took_is_stored(pair, redis_url, tmp_path, monkeypatch, together):
    primary, standby = pair
    cut_off(primary, standby)
    right, taken = deduplication.store_in, []

    async def store(connection, batch, waits):
        rows = await right(connection, batch, waits)
        taken.append(batch)
        if len(taken) == 1:
            primary.kill()
            promote(standby)
        return rows

    with two_hosts(primary, standby, tmp_path) as (url, _), connect(redis_url) as client:
        window = DedupWindow(client, CircuitBreaker(limit=1000))
        deduplicator = Deduplicator(url, window, WorkQueue(client))
        one, other = (
            new_event("evt_1", b"1", id_is_signed=False),
            new_event("evt_2", b"1", id_is_signed=False),
        )
        deliveries = (
            [DeliveryEvents([one, other], WINDOW)]
            if together
            else [DeliveryEvents([e], WINDOW) for e in (one, other)]
        )
        monkeypatch.setattr(deduplication, "store_in", store)

        answers = run(deduplicator.commit(deliveries, IN_THREAD))
        again = run(deduplicator.commit([DeliveryEvents([one], timedelta(hours=1))], IN_THREAD))
        deduplicator.close()

    stored = [answer for answer in answers if not isinstance(answer, Exception)]
    assert stored or together
    assert again[0][0].verdict in {Verdict.ACCEPTED, Verdict.DUPLICATE}
    with psycopg.connect(standby.url) as connection:
        found = {row[0] for row in connection.execute("SELECT event_id FROM hookonce.event_states")}
    assert "evt_1" in found, "it was answered and is nowhere"
    assert len(taken) >= 3
