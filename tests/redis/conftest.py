import pytest

from tests.support.hostile_redis import HostileRedis
from tests.support.shop_sources import open_sources

__all__ = ["open_sources"]


@pytest.fixture
def hostile(data_directory):
    """A server in the place of Redis; it is honest until its `says` is changed."""
    server = HostileRedis(data_directory)
    yield server
    server.close()
