import pytest

from tests.support.commands import Shop


@pytest.fixture
def open_shop(database_url, redis_url, tmp_path):
    """A function: a shop whose payments have these options."""
    made = []

    def make(options="", **changes):
        made.append(Shop(database_url, redis_url, tmp_path, options, **changes))
        return made[-1]

    yield make
    for each in reversed(made):
        each.close()


@pytest.fixture
def shop(open_shop):
    return open_shop()
