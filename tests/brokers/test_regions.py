"""Two regions on one machine: a region that receives hands on to its home, whose unique key decides."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
import requests

from tests.support.consuming import stripe_event
from tests.support.regions import Stack
from tests.support.waiting import until

TIMES = 1000


@pytest.fixture
def regions(fresh_database, fresh_redis, tmp_path):
    with (
        fresh_database() as one,
        fresh_database() as other,
        fresh_redis() as redis,
        fresh_redis() as other_redis,
    ):
        made = [Stack(tmp_path / "away", one, redis), Stack(tmp_path / "home", other, other_redis)]
        yield made
        for each in made:
            each.stop()


def test_id_that_comes_to_both_regions_at_once_has_one_effect_at_home(regions):
    away, home = regions
    away.configure(forwards_to=home, has_handlers=False)
    home.configure()
    away.start()
    home.start()
    body, now = stripe_event(1), datetime.now(UTC)

    with ThreadPoolExecutor(16) as threads, requests.Session() as session:
        answers = list(threads.map(lambda n: regions[n % 2].deliver(body, now, session), range(TIMES)))

    assert set(answers) == {200}
    until(away.forwarded, [("done", None)])
    until(home.effects, ["evt_1"])
    assert home.rows("SELECT event_id FROM hookonce.events") == [("evt_1",)]
    assert away.effects() == []


def test_event_waits_for_a_home_that_is_away(regions):
    away, home = regions
    away.configure(forwards_to=home, has_handlers=False)
    home.configure()
    away.start()

    assert away.deliver(stripe_event(1), datetime.now(UTC)) == 200
    until(lambda: away.rows("SELECT count(*) FROM hookonce.queue WHERE handler = 'forwards.home'"), [(1,)])
    home.start()

    until(away.forwarded, [("done", None)])
    until(home.effects, ["evt_1"])


def test_regions_that_name_each_other_end_at_the_unique_key(regions):
    away, home = regions
    away.configure(forwards_to=home)
    home.configure(forwards_to=away)
    away.start()
    home.start()

    away.deliver(stripe_event(1), datetime.now(UTC))

    until(home.forwarded, [("done", {"skipped": "came from there"})])
    assert away.forwarded() == [("done", None)]
    until(lambda: (away.effects(), home.effects()), (["evt_1"], ["evt_1"]))
