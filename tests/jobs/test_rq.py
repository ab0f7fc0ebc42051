import contextlib
import json
import zlib

import pytest
import redis
from inbox import effect
from rq import Queue
from rq.job import Job as AnyJob
from rq.serializers import JSONSerializer

from jobs import drain as drains
from jobs.rq import Job, Worker
from receiver.handoff import Bell

HOSTILE = {
    "another function": {"func_name": "os.system", "args": ["touch {marker}"]},
    "ours with a keyword": {"func_name": "jobs.perform", "args": [[1]], "kwargs": {"x": 1}},
    "ours without ids": {"func_name": "jobs.perform", "args": ["os.system"]},
    "ours with booleans": {"func_name": "jobs.perform", "args": [[True]]},
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
        key, mapping={"data": data("jobs.perform"), "created_at": "x"}
    ),
    "a bad timeout": lambda client, key: client.hset(
        key, mapping={"data": data("jobs.perform"), "timeout": "x"}
    ),
    "a callback": lambda client, key: client.hset(
        key, mapping={"data": data("jobs.perform"), "success_callback_name": "os.abort"}
    ),
    "a webhook": lambda client, key: client.hset(
        key,
        mapping={
            "data": data("jobs.perform"),
            "webhooks": json.dumps([{"url": "http://127.0.0.1:1/", "job_status": "finished"}]),
        },
    ),
    "a repetition": lambda client, key: client.hset(
        key, mapping={"data": data("jobs.perform"), "repeats_left": "9"}
    ),
}


def data(name):
    return zlib.compress(json.dumps([name, None, [[]], {}]).encode())


@pytest.fixture
def client(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def work(desk, client, monkeypatch):
    """Work off the queue with the real worker, in this process."""
    desk.on(effect)
    desk.work()
    monkeypatch.setattr(drains, "process_drain", lambda: desk.drains[0])

    def run():
        worker = Worker(["hookonce"], connection=client, worker_ttl=35)
        with contextlib.closing(client):
            worker.work(burst=True, logging_level="ERROR")

    return run


def push(client, job_id, write):
    write(client, AnyJob.key_for(job_id))
    client.rpush("rq:queue:hookonce", job_id)


def test_worker_drains_when_the_bell_rings(desk, client, work):
    ids = desk.deliver("a", "b")
    Bell(client).ring(ids[:1])

    work()

    assert desk.effects() == ["a", "b"]


@pytest.mark.parametrize("job", HOSTILE.values(), ids=HOSTILE)
def test_worker_runs_no_job_but_ours_and_goes_on(desk, client, work, tmp_path, job):
    marker = tmp_path / "marker"
    values = [job["func_name"], job.get("instance"), job["args"], job.get("kwargs", {})]
    encoded = zlib.compress(json.dumps(values).replace("{marker}", str(marker)).encode())
    push(client, "hostile", lambda client, key: client.hset(key, mapping={"data": encoded}))
    Bell(client).ring(desk.deliver("a"))

    work()

    assert desk.effects() == ["a"]
    assert not marker.exists()
    assert not client.exists("rq:job:hostile")


@pytest.mark.parametrize("write", MALFORMED.values(), ids=MALFORMED)
def test_worker_goes_on_after_a_malformed_job(desk, client, work, write):
    push(client, "malformed", write)
    Bell(client).ring(desk.deliver("a"))

    work()

    assert desk.effects() == ["a"]
    assert client.llen("rq:queue:hookonce:intermediate") == 0


def test_worker_leaves_nothing_of_a_job_behind(desk, client, work):
    Bell(client).ring(desk.deliver("a"))

    work()

    assert client.keys("rq:job:*") == []


def test_bell_rings_only_if_it_is_quiet(client):
    bell = Bell(client)

    assert [bell.ring_if_quiet(), bell.ring_if_quiet()] == [True, False]
    assert bell.waiting() == 1


def test_job_that_the_bell_makes_is_one_that_the_worker_takes(client):
    Bell(client).ring([1, 2])

    (job,) = Queue("hookonce", connection=client, serializer=JSONSerializer, job_class=Job).jobs

    assert (job.func_name, job.args, job.result_ttl, job.retries_left) == ("jobs.perform", [[1, 2]], 0, None)
