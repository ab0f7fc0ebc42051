from datetime import timedelta

import pytest

from hookonce.receiver.redis import client
from tests.support.hostile_redis import HostileRedis
from tests.support.shop_sources import open_sources

__all__ = ["open_sources"]


@pytest.fixture(autouse=True)
def patience(request, monkeypatch):
    """Answers are waited for as long as a busy machine takes, but where hostile ones are."""
    if request.path.stem not in {"test_hostile_redis", "test_bounded_socket"}:
        monkeypatch.setattr(client, "REDIS_TIMEOUT", timedelta(seconds=5))


@pytest.fixture
def hostile(data_directory):
    """A server in the place of Redis; it is honest until its `says` is changed."""
    server = HostileRedis(data_directory)
    yield server
    server.close()
