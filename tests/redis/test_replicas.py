import pytest
import redis

from hookonce.receiver.dev.embedded import Valkey
from hookonce.receiver.processes.waits import run
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.dedup_window import DedupWindow, WindowEntry, WindowPlace, WindowUnavailable
from hookonce.receiver.redis.work_queue import WorkQueue


@pytest.fixture
def failed_over(data_directory, redis_url):
    """A URL that led to another server, now a replica, as long as somebody was connected; and who was."""
    path, _, options = redis_url.removeprefix("unix://").partition("?")
    name = data_directory / "primary.sock"
    old = Valkey.start(data_directory, databases=1024)
    name.symlink_to(old.url.removeprefix("unix://"))
    client = connect(f"unix://{name}?{options}")
    client.ping()

    with redis.Redis.from_url(old.url) as primary:
        primary.replicaof("127.0.0.1", 1)
    name.unlink()
    name.symlink_to(path)
    yield client
    client.close()
    old.stop()


def test_the_window_leaves_a_server_that_has_become_a_replica(failed_over):
    window = DedupWindow(failed_over, CircuitBreaker())
    entry, place = WindowEntry("stripe", "evt_1", b"f" * 32), WindowPlace("place", b"k" * 31)

    with pytest.raises(WindowUnavailable):
        run(window.claim(place, [entry]))

    assert run(window.claim(place, [entry])) == [False]


def test_the_work_queue_leaves_a_server_that_has_become_a_replica(failed_over):
    work_queue = WorkQueue(failed_over)

    with pytest.raises(RedisUnavailable):
        work_queue.notify()

    work_queue.notify()
    assert work_queue.pending() == 1
