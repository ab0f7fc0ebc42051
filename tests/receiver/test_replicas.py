from datetime import timedelta

import pytest
import redis

from receiver.breaker import Breaker
from receiver.embedded import Valkey
from receiver.handoff import Bell
from receiver.window import Entry, Window, WindowUnavailable, connect


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
    window = Window(failed_over, Breaker())
    entry = Entry("stripe", "evt_1", b"f" * 32, timedelta(minutes=1))

    with pytest.raises(WindowUnavailable):
        window.claim("place", [entry])

    assert window.claim("place", [entry]) == [False]


def test_the_bell_leaves_a_server_that_has_become_a_replica(failed_over):
    bell = Bell(failed_over)

    with pytest.raises(redis.ReadOnlyError):
        bell.ring()

    bell.ring()
    assert bell.waiting() == 1
