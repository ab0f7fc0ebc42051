"""Whatever Redis says to a worker, it runs events of the ledger and nothing else."""

import json
import signal
import zlib

import pytest
from sqlalchemy import text

from hookonce.jobs import stopping, worker
from hookonce.jobs.worker import NotOurs, read
from hookonce.receiver.redis.work_queue import FUNCTION, MAX_IDS, REQUEUE
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


def job(function, *arguments):
    return zlib.compress(json.dumps([function, None, list(arguments), {}]).encode())


def test_job_names_events_that_can_be_and_not_too_many():
    refused = [name for name, ids in IDS.items() if not is_refused(job(FUNCTION, ids))]

    assert refused == []
    assert read(job(FUNCTION, [1, 2**63 - 1])) == [1, 2**63 - 1]
    assert read(job(FUNCTION, [])) == []


@pytest.mark.parametrize(
    "arguments",
    [(0, "h", 1), (2**63, "h", 1), (1, None, 1), (1, "h", 0), (1, "h", 2**31), (1, "h"), (True, "h", 1)],
)
def test_requeued_job_names_a_run_that_can_be(arguments):
    assert is_refused(job(REQUEUE, *arguments))
    assert read(job(REQUEUE, 1, "h", 2)) == (1, "h", 2)


def is_refused(data):
    try:
        read(data)
    except NotOurs:
        return True
    return False


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
