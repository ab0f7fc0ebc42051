import contextlib
import threading
from datetime import timedelta

import psycopg
import pytest
import redis
from rq import Queue
from rq.serializers import JSONSerializer

from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import RetryId, Verdict
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.new_event import WINDOW, new_event


class CountingDeduplicator(Deduplicator):
    """A deduplicator that notes which events reached the ledger."""

    def __init__(self, *args):
        super().__init__(*args)
        self.asked = []

    def __call__(self, deliveries):
        return run(self.commit(deliveries, IN_THREAD))

    async def _store_rounds(self, events, waits):
        events = list(events)
        self.asked.append([event.event_id for event in events])
        return await super()._store_rounds(events, waits)


@pytest.fixture
def open_deduplicator(database_url, redis_url):
    with contextlib.ExitStack() as opened:

        def make(redis_url=redis_url, database_url=database_url):
            client = opened.enter_context(connect(redis_url))
            deduplicator = CountingDeduplicator(
                database_url, DedupWindow(client, CircuitBreaker()), WorkQueue(client)
            )
            opened.callback(deduplicator.close)
            return deduplicator

        yield make


@pytest.fixture
def deduplicator(open_deduplicator):
    return open_deduplicator()


def delivery_events(*events):
    return DeliveryEvents(events, WINDOW)


def verdicts(answers):
    return [[row.verdict for row in rows] for rows in answers]


def test_deduplicator_stores_a_batch_of_deliveries_at_once(deduplicator):
    answers = deduplicator([delivery_events(new_event("a")), delivery_events(new_event("b"), new_event("c"))])

    assert verdicts(answers) == [[Verdict.ACCEPTED], [Verdict.ACCEPTED] * 2]
    assert deduplicator.asked == [["a", "b", "c"]]


def test_deduplicator_asks_the_ledger_nothing_about_a_fast_retry(deduplicator):
    deduplicator([delivery_events(new_event("a"))])
    deduplicator.asked.clear()

    assert verdicts(deduplicator([delivery_events(new_event("a"))])) == [[Verdict.DUPLICATE]]
    assert deduplicator.asked == []


def test_deduplicator_folds_copies_inside_a_batch(deduplicator):
    answers = deduplicator([delivery_events(new_event("a")) for _ in range(50)])

    assert verdicts(answers) == [[Verdict.ACCEPTED]] + [[Verdict.DUPLICATE]] * 49
    assert deduplicator.asked == [["a"]]


def test_deduplicator_tells_two_bodies_under_one_id_apart(deduplicator):
    answers = deduplicator([delivery_events(new_event("a", b"one")), delivery_events(new_event("a", b"two"))])

    assert verdicts(answers) == [[Verdict.ACCEPTED], [Verdict.CONFLICT]]


def test_deduplicator_takes_the_ledgers_word_for_another_body_under_a_known_id(deduplicator):
    deduplicator([delivery_events(new_event("a", b"one"))])

    assert verdicts(deduplicator([delivery_events(new_event("a", b"two"))])) == [[Verdict.CONFLICT]]
    assert verdicts(deduplicator([delivery_events(new_event("a", b"one"))])) == [[Verdict.DUPLICATE]]


def test_deduplicator_has_the_window_answer_for_the_body_of_the_row_only(deduplicator):
    for body in (b"one", b"two"):
        deduplicator([delivery_events(new_event("a", body))])
    deduplicator.asked.clear()

    assert verdicts(deduplicator([delivery_events(new_event("a", b"two"))])) == [[Verdict.CONFLICT]]
    assert verdicts(deduplicator([delivery_events(new_event("a", b"one"))])) == [[Verdict.DUPLICATE]]
    assert deduplicator.asked == [["a"]]


def test_deduplicator_does_not_believe_a_claim(deduplicator, redis_url):
    deduplicator([delivery_events(new_event("other"))])
    client = redis.Redis.from_url(redis_url)
    (key,) = client.keys("hookonce:*other*")
    client.set(key.replace(b"other", b"a"), "claimed")

    assert verdicts(deduplicator([delivery_events(new_event("a"))])) == [[Verdict.ACCEPTED]]
    client.close()


def test_deduplicator_does_not_believe_what_was_written_for_another_database(
    deduplicator, redis_url, database_url
):
    deduplicator([delivery_events(new_event("a"))])
    run(deduplicator.rest(IN_THREAD))
    with connections.connect(database_url) as connection:
        connection.execute("TRUNCATE hookonce.events CASCADE")
        client = redis.Redis.from_url(redis_url)
        for key in client.keys("hookonce:*"):
            client.rename(key, key.replace(b"-0000", b"-0009", 1))

        assert verdicts(deduplicator([delivery_events(new_event("a"))])) == [[Verdict.ACCEPTED]]
        assert connection.execute("SELECT count(*) FROM hookonce.event_states").fetchone() == (1,)
    client.close()


def test_deduplicator_does_not_believe_what_was_written_for_another_database_of_the_server(
    open_deduplicator, fresh_database
):
    here = open_deduplicator()
    with fresh_database() as beside:
        there = open_deduplicator(database_url=beside)

        answers = [each([delivery_events(new_event("a"))]) for each in (here, there, here, there)]
        there.close()

    assert [each for ((each,),) in map(verdicts, answers)] == [Verdict.ACCEPTED] * 2 + [Verdict.DUPLICATE] * 2
    assert (here.asked, there.asked) == ([["a"]], [["a"]])


def test_deduplicator_marks_the_second_of_two_equal_bodies_in_one_batch_as_a_repeat(
    deduplicator, database_url
):
    deduplicator(
        [
            delivery_events(new_event("a", id_is_signed=False)),
            delivery_events(new_event("b", id_is_signed=False)),
        ]
    )

    with connections.connect(database_url) as connection:
        assert connection.execute(
            "SELECT event_id FROM hookonce.event_states WHERE repeat_of IS NOT NULL"
        ).fetchall() == [("b",)]


def test_deduplicator_notifies_once_for_many_events(deduplicator, redis_url):
    for n in range(5):
        deduplicator([delivery_events(new_event(f"evt_{n}"))])

    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("rq:queue:hookonce") == 1


def test_deduplicator_notifies_with_the_id_of_the_event_when_idle(deduplicator, redis_url):
    ((row,),) = deduplicator([delivery_events(new_event("a"))])
    run(deduplicator.rest(IN_THREAD))

    with redis.Redis.from_url(redis_url) as client:
        (job,) = Queue("hookonce", connection=client, serializer=JSONSerializer).jobs

    assert (job.func_name, job.args) == ("hookonce.jobs.drain.perform", [[row.id]])


def test_deduplicator_settles_a_batch_with_the_claim_of_the_next(deduplicator, redis_url):
    with redis.Redis.from_url(redis_url) as client:
        calls = lambda: client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]  # noqa: E731
        deduplicator([delivery_events(new_event("a"))])
        before = calls()
        answers = deduplicator([delivery_events(new_event("a")), delivery_events(new_event("b"))])

        assert calls() - before == 1
        assert len(client.lrange("rq:queue:hookonce", 0, -1)) == 1
    assert verdicts(answers) == [[Verdict.DUPLICATE], [Verdict.ACCEPTED]]
    assert deduplicator.asked == [["a"], ["b"]]


def test_deduplicator_goes_on_when_its_connection_was_cut(deduplicator, database_url):
    deduplicator([delivery_events(new_event("a"))])
    with connections.connect(database_url) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                      "AND datname = current_database()")  # fmt: skip

    assert verdicts(deduplicator([delivery_events(new_event("a")), delivery_events(new_event("b"))])) == [
        [Verdict.DUPLICATE],
        [Verdict.ACCEPTED],
    ]


def test_deduplicator_accepts_without_redis(open_deduplicator):
    deduplicator = open_deduplicator("redis://127.0.0.1:1/0")

    assert verdicts(deduplicator([delivery_events(new_event("a"))])) == [[Verdict.ACCEPTED]]
    assert verdicts(deduplicator([delivery_events(new_event("a"))])) == [[Verdict.DUPLICATE]]


def test_deduplicator_lets_only_the_delivery_that_waits_for_a_lock_pay(deduplicator, database_url):
    with psycopg.connect(database_url) as twin:
        twin.execute("INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, "
        "id_is_signed) "
                     "VALUES ('stripe', 'stripe', 'b', 'x', '', true)")  # fmt: skip

        a, b, c = deduplicator(
            [
                delivery_events(new_event("a")),
                delivery_events(new_event("b")),
                delivery_events(new_event("c")),
            ]
        )

    assert verdicts([a, c]) == [[Verdict.ACCEPTED]] * 2
    assert isinstance(b, connections.LedgerUnavailable)


def test_lanes_store_an_event_once_when_all_get_it_at_one_moment(open_deduplicator):
    def deliver(deduplicator):
        barrier.wait()
        answers.extend(verdicts(deduplicator([delivery_events(new_event(f"evt_{n}")) for n in range(20)])))

    answers, barrier = [], threading.Barrier(4, timeout=20)
    threads = [threading.Thread(target=deliver, args=[open_deduplicator()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    flat = [verdict for rows in answers for verdict in rows]
    assert flat.count(Verdict.ACCEPTED) == 20
    assert flat.count(Verdict.DUPLICATE) == 60


def across_a_period():
    return new_event("a@14:07"), new_event("a@14:08", retry_ids=(RetryId("a@14:07", timedelta(minutes=1)),))


def test_deduplicator_finds_a_retry_across_a_period_in_the_same_batch(deduplicator):
    first, retry = across_a_period()

    assert verdicts(deduplicator([delivery_events(first), delivery_events(retry)])) == [
        [Verdict.ACCEPTED],
        [Verdict.DUPLICATE],
    ]


def test_deduplicator_does_not_remember_a_retry_across_a_period_under_its_own_id(deduplicator, database_url):
    first, retry = across_a_period()
    deduplicator([delivery_events(first)])

    assert verdicts(deduplicator([delivery_events(retry)] * 2)) == [[Verdict.DUPLICATE]] * 2
    with connections.connect(database_url) as connection:
        connection.execute("UPDATE hookonce.events SET received_at = received_at - interval '61 s'")
    assert verdicts(deduplicator([delivery_events(retry)])) == [[Verdict.ACCEPTED]]
