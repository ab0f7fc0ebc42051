import pytest

from tests.support.hostile_redis import HostileRedis
from tests.support.shop_sources import Sources


@pytest.fixture
def open_sources(database_url, redis_url, tmp_path):
    """A function: a receiver with one source that has these options."""
    made = []

    def make(options="", **changes):
        made.append(Sources(database_url, changes.pop("redis_url", redis_url), tmp_path, options, **changes))
        return made[-1]

    yield make
    for each in reversed(made):
        each.close()


@pytest.fixture
def hostile(data_directory):
    """A server in the place of Redis; it is honest until its `says` is changed."""
    server = HostileRedis(data_directory)
    yield server
    server.close()
