"""Through a real PgBouncer in transaction mode, whose few connections change hands after every statement."""

import threading
from dataclasses import replace

import psycopg
import pytest

from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config import server_urls
from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.ledger.database import connections, migrate, schema_version
from hookonce.receiver.ledger.database.schema_version import REVISION
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.monitoring import health
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.inbox import effect, inbox
from tests.support.new_event import WINDOW, new_event
from tests.support.pooler import PGBOUNCER, pooled_url
from tests.support.waiting import at_once

__all__ = ["inbox", "pooled_url"]

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


def test_inbox_works_through_a_pooler_in_transaction_mode(inbox, pooled_url, redis_url):
    def receive(number):
        with connect(redis_url) as client:
            lane = Deduplicator(pooled_url, DedupWindow(client, CircuitBreaker()), WorkQueue(client))
            ids = [f"evt_{number}_{n}" for n in range(30)]
            answers = [
                run(lane.commit([DeliveryEvents([new_event(event_id)], WINDOW)], IN_THREAD))
                for event_id in ids + ids[:5]
            ]
            verdicts[number] = [answer[0][0].verdict for answer in answers]
            lane.close()

    inbox.on(effect)
    pooled = replace(inbox.settings, database_url=pooled_url)
    drains, sweep, verdicts = [SingleSlot(pooled, inbox.registry) for _ in range(2)], Sweep(pooled), {}
    threads = [threading.Thread(target=receive, args=[n]) for n in range(4)]

    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) or sweep.once():
        for drain in drains:
            drain.run_due()
    for each in (*drains, sweep):
        each.close()

    assert list(verdicts.values()) == [[Verdict.ACCEPTED] * 30 + [Verdict.DUPLICATE] * 5] * 4
    assert len(inbox.effects()) == len(set(inbox.effects())) == 120


def test_schema_is_upgraded_through_a_pooler_by_several_at_once(pooled_url, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    reached = []
    at_once(*[lambda: reached.append(migrate.upgrade(pooled_url))] * 2)

    assert reached == [REVISION] * 2


def test_pooled_connection_is_never_changed_for_those_who_come_after(pooled_url):
    with connections.connect(pooled_url) as connection:
        before = connection.execute("SHOW lock_timeout").fetchone()
        connections.set_lock_timeout(connection, connections.timedelta(milliseconds=5))

        assert connection.execute("SHOW lock_timeout").fetchone() == before == ("700ms",)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("postgres://u@h/d?pgbouncer=true", "postgresql://u@h/d"),
        ("postgresql://u@h/d?sslmode=require&pgbouncer=true", "postgresql://u@h/d?sslmode=require"),
    ],
)
def test_pooled_url_is_one_that_libpq_reads(url, plain):
    assert server_urls.is_pooled(url)
    assert server_urls.libpq_url(url) == plain
    assert not server_urls.is_pooled(plain)


def test_pooler_that_answers_for_a_server_that_does_not_is_waited_for(pooled_url, monkeypatch):
    def refuse(_):
        raise psycopg.errors.ProtocolViolation(
            "server login has been failing, try again later (server_login_retry)"
        )

    monkeypatch.setattr(schema_version, "require_schema", refuse)

    with pytest.raises(connections.LedgerUnavailable):
        health.require_schema(pooled_url)
