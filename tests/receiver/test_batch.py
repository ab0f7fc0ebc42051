import contextlib
import threading

import psycopg
import pytest
import redis
from make import WINDOW, new_event
from rq import Queue
from rq.serializers import JSONSerializer

from receiver import database
from receiver.batch import Lane, Parcel
from receiver.breaker import Breaker
from receiver.handoff import Bell
from receiver.ledger.store import Verdict
from receiver.window import Window, connect


class CountingLane(Lane):
    """A lane that says which events reached the ledger."""

    def __init__(self, *args):
        super().__init__(*args)
        self.asked = []

    def _store_rounds(self, events):
        events = list(events)
        self.asked.append([event.event_id for event in events])
        return super()._store_rounds(events)


@pytest.fixture
def open_lane(database_url, redis_url):
    with contextlib.ExitStack() as opened:

        def make(redis_url=redis_url):
            client = opened.enter_context(connect(redis_url))
            lane = CountingLane(database_url, Window(client, Breaker()), Bell(client))
            opened.callback(lane.close)
            return lane

        yield make


@pytest.fixture
def lane(open_lane):
    return open_lane()


def parcel(*events):
    return Parcel(events, WINDOW)


def verdicts(answers):
    return [[row.verdict for row in rows] for rows in answers]


def test_lane_stores_a_batch_of_deliveries_at_once(lane):
    answers = lane([parcel(new_event("a")), parcel(new_event("b"), new_event("c"))])

    assert verdicts(answers) == [[Verdict.ACCEPTED], [Verdict.ACCEPTED] * 2]
    assert lane.asked == [["a", "b", "c"]]


def test_lane_asks_the_ledger_nothing_about_a_fast_retry(lane):
    lane([parcel(new_event("a"))])
    lane.asked.clear()

    assert verdicts(lane([parcel(new_event("a"))])) == [[Verdict.DUPLICATE]]
    assert lane.asked == []


def test_lane_folds_copies_inside_a_batch(lane):
    answers = lane([parcel(new_event("a")) for _ in range(50)])

    assert verdicts(answers) == [[Verdict.ACCEPTED]] + [[Verdict.DUPLICATE]] * 49
    assert lane.asked == [["a"]]


def test_lane_tells_two_bodies_under_one_id_apart(lane):
    answers = lane([parcel(new_event("a", b"one")), parcel(new_event("a", b"two"))])

    assert verdicts(answers) == [[Verdict.ACCEPTED], [Verdict.CONFLICT]]


def test_lane_takes_the_ledgers_word_for_another_body_under_a_known_id(lane):
    lane([parcel(new_event("a", b"one"))])

    assert verdicts(lane([parcel(new_event("a", b"two"))])) == [[Verdict.CONFLICT]]
    assert verdicts(lane([parcel(new_event("a", b"one"))])) == [[Verdict.DUPLICATE]]


def test_lane_does_not_believe_a_claim(lane, redis_url):
    lane([parcel(new_event("other"))])
    client = redis.Redis.from_url(redis_url)
    (key,) = client.keys("hookonce:*other*")
    client.set(key.replace(b"other", b"a"), "claimed")

    assert verdicts(lane([parcel(new_event("a"))])) == [[Verdict.ACCEPTED]]
    client.close()


def test_lane_does_not_believe_what_was_written_for_another_database(lane, redis_url, database_url):
    lane([parcel(new_event("a"))])
    with database.connect(database_url) as connection:
        connection.execute("TRUNCATE events CASCADE")
        client = redis.Redis.from_url(redis_url)
        for key in client.keys("hookonce:*"):
            client.rename(key, key.replace(b"-0000", b"-0009", 1))

        assert verdicts(lane([parcel(new_event("a"))])) == [[Verdict.ACCEPTED]]
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (1,)
    client.close()


def test_lane_marks_the_second_of_two_equal_bodies_in_one_batch_as_a_repeat(lane, database_url):
    lane([parcel(new_event("a", id_is_signed=False)), parcel(new_event("b", id_is_signed=False))])

    with database.connect(database_url) as connection:
        assert connection.execute("SELECT event_id FROM events WHERE repeat_of IS NOT NULL").fetchall() == [
            ("b",)
        ]


def test_lane_rings_once_for_many_events(lane, redis_url):
    for n in range(5):
        lane([parcel(new_event(f"evt_{n}"))])

    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("rq:queue:hookonce") == 1


def test_lane_rings_with_the_id_of_the_event_when_idle(lane, redis_url):
    ((row,),) = lane([parcel(new_event("a"))])

    with redis.Redis.from_url(redis_url) as client:
        (job,) = Queue("hookonce", connection=client, serializer=JSONSerializer).jobs

    assert (job.func_name, job.args) == ("jobs.perform", [[row.id]])


def test_lane_goes_on_when_its_connection_was_cut(lane, database_url):
    lane([parcel(new_event("a"))])
    with database.connect(database_url) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                      "AND datname = current_database()")  # fmt: skip

    assert verdicts(lane([parcel(new_event("a")), parcel(new_event("b"))])) == [
        [Verdict.DUPLICATE],
        [Verdict.ACCEPTED],
    ]


def test_lane_accepts_without_redis(open_lane):
    lane = open_lane("redis://127.0.0.1:1/0")

    assert verdicts(lane([parcel(new_event("a"))])) == [[Verdict.ACCEPTED]]
    assert verdicts(lane([parcel(new_event("a"))])) == [[Verdict.DUPLICATE]]


def test_lane_lets_only_the_delivery_that_waits_for_a_lock_pay(lane, database_url):
    with psycopg.connect(database_url) as twin:
        twin.execute("INSERT INTO events (source, provider, event_id, type, fingerprint, id_is_signed, status) "
                     "VALUES ('stripe', 'stripe', 'b', 'x', '', true, 'received')")  # fmt: skip

        a, b, c = lane([parcel(new_event("a")), parcel(new_event("b")), parcel(new_event("c"))])

    assert verdicts([a, c]) == [[Verdict.ACCEPTED]] * 2
    assert isinstance(b, database.LedgerUnavailable)


def test_lanes_store_an_event_once_when_all_get_it_at_one_moment(open_lane):
    def deliver(lane):
        barrier.wait()
        answers.extend(verdicts(lane([parcel(new_event(f"evt_{n}")) for n in range(20)])))

    answers, barrier = [], threading.Barrier(4, timeout=20)
    threads = [threading.Thread(target=deliver, args=[open_lane()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    flat = [verdict for rows in answers for verdict in rows]
    assert flat.count(Verdict.ACCEPTED) == 20
    assert flat.count(Verdict.DUPLICATE) == 60
