"""Whatever Redis says to a worker, it runs events of the ledger and nothing else."""

import signal

import pytest
import redis
from rq.job import Job as AnyJob
from rq.serializers import JSONSerializer
from sqlalchemy import text

from hookonce.jobs import stopping, worker
from hookonce.jobs.worker import Job, NotOurs
from hookonce.receiver.redis.work_queue import FUNCTION, JOB_TIMEOUT, MAX_IDS
from tests.support.hostile_redis import HostileRedis, honest

IDS = {
    "of nobody": [0],
    "negative": [-1],
    "larger than PostgreSQL's": [2**63],
    "larger than anything": [10**400],
    "too many": list(range(1, MAX_IDS + 2)),
    "in a list": [[1]],
    "words": ["1"],
    "with a fraction": [1.5],
    "true": [True],
}


@pytest.fixture
def signals():
    """Give this process back its own ways to hear signals."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def hostile(data_directory):
    server = HostileRedis(data_directory)
    yield server
    server.close()


def is_taken(client, ids):
    """Whether a job that names these events is one of ours."""
    made = AnyJob.create(
        FUNCTION,
        args=[ids],
        connection=client,
        serializer=JSONSerializer,
        timeout=int(JOB_TIMEOUT.total_seconds()),
    )
    made.save()
    try:
        Job.fetch(made.id, connection=client, serializer=JSONSerializer)
    except NotOurs:
        return False
    return True


def test_job_names_events_that_can_be_and_not_too_many(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        taken = [name for name, ids in IDS.items() if is_taken(client, ids)]

        assert taken == []
        assert is_taken(client, [1, 2**63 - 1])
        assert is_taken(client, [])


def saying(answer, *commands):
    def says(phase, command):
        return answer if command[0] in commands else honest(phase, command)

    return says


ANSWERS = {
    "a worker of the same name is there already": saying(b":1\r\n", b"EXISTS"),
    "numbers of letters": saying(b":abc\r\n", b"EXISTS", b"EXEC", b"BLMOVE"),
    "lists in lists": saying(b"*1\r\n" * 50_000, b"EXISTS", b"EXEC", b"BLMOVE"),
    "an endless queue of nothing": saying(b"$1\r\na\r\n", b"BLMOVE", b"LMOVE", b"BRPOPLPUSH"),
    "a number for a job": saying(b":7\r\n", b"BLMOVE", b"LMOVE"),
    "more than can be": saying(b"$99999999\r\n" + b"a" * 5_000_000, b"BLMOVE", b"EXISTS"),
    "errors": saying(b"-ERR no\r\n", b"EXISTS", b"EXEC", b"BLMOVE", b"HSET", b"EXPIRE"),
}


@pytest.mark.usefixtures("signals")
def test_events_are_handled_whatever_redis_says_to_a_worker(inbox, hostile):
    def handle(event, tx):
        tx.execute(text("INSERT INTO effects (event) VALUES (:event)"), {"event": event.event_id})
        stopping.stopping.set()

    inbox.on(handle)
    inbox.work()
    for name, says in ANSWERS.items():
        stopping.stopping.clear()
        hostile.says = says
        inbox.deliver(name)

        worker.work(inbox.drains[0], hostile.url)

    assert sorted(inbox.effects()) == sorted(ANSWERS)
