import contextlib
import json
import os
import signal
import zlib
from functools import cache

import pytest
import redis
from rq import Queue
from rq.job import Job as AnyJob
from rq.serializers import JSONSerializer

from hookonce.jobs import worker
from hookonce.jobs.worker import Worker, read
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.inbox import effect
from tests.support.waiting import until

HOSTILE = {
    "another function": {"func_name": "os.system", "args": ["touch {marker}"]},
    "ours with a keyword": {"func_name": "hookonce.jobs.drain.perform", "args": [[1]], "kwargs": {"x": 1}},
    "ours without ids": {"func_name": "hookonce.jobs.drain.perform", "args": ["os.system"]},
    "ours with booleans": {"func_name": "hookonce.jobs.drain.perform", "args": [[True]]},
    "a method of an instance": {"func_name": "system", "instance": "os", "args": ["touch {marker}"]},
}
MALFORMED = {
    "no hash": lambda client, key: client.set(key, "x"),
    "empty data": lambda client, key: client.hset(
        key, mapping={"data": b"", "created_at": "2026-01-01T00:00:00Z"}
    ),
    "no json": lambda client, key: client.hset(key, mapping={"data": zlib.compress(b"\x80\x04pickle")}),
    "a list too short": lambda client, key: client.hset(key, mapping={"data": zlib.compress(b"[1]")}),
    "a bad date": lambda client, key: client.hset(
        key, mapping={"data": data("hookonce.jobs.drain.perform"), "created_at": "x"}
    ),
    "a bad timeout": lambda client, key: client.hset(
        key, mapping={"data": data("hookonce.jobs.drain.perform"), "timeout": "x"}
    ),
    "a callback": lambda client, key: client.hset(
        key, mapping={"data": data("hookonce.jobs.drain.perform"), "success_callback_name": "os.abort"}
    ),
    "a webhook": lambda client, key: client.hset(
        key,
        mapping={
            "data": data("hookonce.jobs.drain.perform"),
            "webhooks": json.dumps([{"url": "http://127.0.0.1:1/", "job_status": "finished"}]),
        },
    ),
    "a repetition": lambda client, key: client.hset(
        key, mapping={"data": data("hookonce.jobs.drain.perform"), "repeats_left": "9"}
    ),
}


MALFORMED |= {
    "a bomb": lambda client, key: client.hset(key, mapping={"data": bomb()}),
    "a bomb in the error": lambda client, key: client.hset(
        key, mapping={"data": data("os.abort"), "exc_info": bomb()}
    ),
    "a huge payload": lambda client, key: client.hset(
        key, mapping={"data": json.dumps(["hookonce.jobs.drain.perform", None, [list(range(1_000_000))], {}])}
    ),
    "no job": lambda client, key: client.delete(key),
}
BOOKS = (
    "rq:workers",
    "rq:workers:hookonce",
    "rq:queues",
    "rq:queue:hookonce",
    "rq:queue:hookonce:intermediate",
    "rq:wip:hookonce",
    "rq:failed:hookonce",
    "rq:finished:hookonce",
    "rq:deferred:hookonce",
    "rq:clean_registries:hookonce",
    "rq:groups",
    "rq:suspended",
)


@cache
def bomb():
    return zlib.compress(bytes(500_000_000), 1)


def data(name):
    return zlib.compress(json.dumps([name, None, [[]], {}]).encode())


@pytest.fixture
def client(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def signals():
    """Give this process back its own ways to hear signals."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def work(inbox, client):
    """Work off the queue with the real worker, in this process."""
    inbox.on(effect)
    inbox.work()

    def run(**options):
        worker = Worker(["hookonce"], connection=client, worker_ttl=35, claimer=inbox.drains[0])
        with contextlib.closing(client):
            worker.work(**({"burst": True} | options), logging_level="CRITICAL")

    return run


def push(client, job_id, write):
    write(client, AnyJob.key_for(job_id))
    client.rpush("rq:queue:hookonce", job_id)


def test_worker_drains_when_the_bell_rings(inbox, client, work):
    ids = inbox.deliver("a", "b")
    WorkQueue(client).notify(ids[:1])

    work()

    assert inbox.effects() == ["a", "b"]


@pytest.mark.usefixtures("signals")
def test_worker_that_is_told_to_stop_says_which_attempt_it_waits_for(inbox, client, work, caplog):
    def is_told(_event, _tx):
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: "waiting for event" in caplog.text)

    inbox.on(is_told, pattern="long")
    [event] = inbox.deliver("a", type="long")
    WorkQueue(client).notify([event])

    work(burst=False)

    assert f"waiting for event {event} (handler is_told) before it stops" in caplog.text
    assert ("a", "is_told", "done", 1) in inbox.runs()


@pytest.mark.parametrize("job", HOSTILE.values(), ids=HOSTILE)
def test_worker_runs_no_job_but_ours_and_goes_on(inbox, client, work, tmp_path, job):
    marker = tmp_path / "marker"
    values = [job["func_name"], job.get("instance"), job["args"], job.get("kwargs", {})]
    encoded = zlib.compress(json.dumps(values).replace("{marker}", str(marker)).encode())
    push(client, "hostile", lambda client, key: client.hset(key, mapping={"data": encoded}))
    WorkQueue(client).notify(inbox.deliver("a"))

    work()

    assert inbox.effects() == ["a"]
    assert not marker.exists()
    assert not client.exists("rq:job:hostile")


@pytest.mark.parametrize("write", MALFORMED.values(), ids=MALFORMED)
def test_worker_goes_on_after_a_malformed_job(inbox, client, work, write):
    push(client, "malformed", write)
    WorkQueue(client).notify(inbox.deliver("a"))

    work()

    assert inbox.effects() == ["a"]
    assert client.llen("rq:queue:hookonce:intermediate") == 0


@pytest.mark.parametrize("key", BOOKS)
@pytest.mark.parametrize(
    "write", [lambda c, k: c.set(k, "x"), lambda c, k: c.hset(k, "x", "y")], ids=["text", "hash"]
)
@pytest.mark.usefixtures("signals", "work")
def test_events_are_handled_whatever_is_in_the_place_of_rqs_keys(
    inbox, client, redis_url, monkeypatch, key, write
):
    monkeypatch.setattr(worker, "LISTEN_TIMEOUT", 0.05)
    write(client, key)
    inbox.on(stop_this_process)
    inbox.deliver("a")

    worker.work(inbox.drains[0], redis_url)

    assert inbox.effects() == ["a"]


def stop_this_process(_event, _tx):
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("book", ["wip", "failed", "finished", "deferred"])
def test_maintenance_runs_nothing_that_an_entry_in_rqs_books_names(inbox, client, work, book):
    hostile = {"data": data("os.abort"), "failure_callback_name": "os.abort", "retries_left": "3"}
    client.hset("rq:job:hostile", mapping=hostile)
    client.zadd(f"rq:{book}:hookonce", {"hostile:1": 1, "hostile": 1, b"\xff": 1})
    WorkQueue(client).notify(inbox.deliver("a"))

    work()

    assert inbox.effects() == ["a"]


def test_events_are_handled_beside_a_flood_of_junk_in_the_queue(inbox, client, work, monkeypatch):
    monkeypatch.setattr(worker, "LISTEN_TIMEOUT", 0.01)
    client.rpush("rq:queue:hookonce", *(f"junk{n}" for n in range(2_000)))
    inbox.deliver("a")
    left = []

    def look(_event, _tx):
        left.append(client.llen("rq:queue:hookonce"))

    inbox.on(look)
    work()

    assert left[0] > 1_000


def test_worker_leaves_nothing_of_a_job_behind(inbox, client, work):
    WorkQueue(client).notify(inbox.deliver("a"))

    work()

    assert client.keys("rq:job:*") == []


def test_bell_rings_only_if_it_is_quiet(client):
    work_queue = WorkQueue(client)

    assert [work_queue.notify_if_idle(), work_queue.notify_if_idle()] == [True, False]
    assert work_queue.pending() == 1


def test_job_that_the_bell_makes_is_one_that_the_worker_takes(client):
    WorkQueue(client).notify([1, 2])

    (job,) = Queue("hookonce", connection=client, serializer=JSONSerializer).jobs

    assert (job.result_ttl, job.retries_left) == (0, None)
    assert read(client.hget(job.key, "data")) == [1, 2]
