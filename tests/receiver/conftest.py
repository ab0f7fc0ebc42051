import pytest
from in_process import Receiver


@pytest.fixture(scope="module")
def receiver(fresh_database, fresh_redis):
    with fresh_database() as database_url, fresh_redis() as redis_url:
        running = Receiver(database_url, redis_url)
        yield running
        running.close()
