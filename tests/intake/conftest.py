import pytest

from tests.support.shop_sources import Sources


@pytest.fixture
def open_sources(database_url, redis_url, tmp_path):
    """A function: the application with a source that has these options."""
    made = []

    def make(options="", **changes):
        made.append(Sources(database_url, changes.pop("redis_url", redis_url), tmp_path, options, **changes))
        return made[-1]

    yield make
    for each in reversed(made):
        each.close()
