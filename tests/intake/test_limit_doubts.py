"""Redis is not believed about a limit that the ledger knows nothing of."""

import time
from datetime import timedelta

import pytest
import redis

from hookonce.receiver.intake.limit_doubts import PATIENCE, QUIET, RECHECK_INTERVAL, LimitDoubts

REFUSED = 'rate = "4/h"\nover_limit = "refuse"'
HELD = 'rate = "4/h"'
BUCKET = "hookonce:{limit:source:shop}:rate"
OFF = "SELECT max(extract(epoch FROM due_at - received_at))::int FROM hookonce.event_states"
NOWHERE = "postgresql://127.0.0.1:1/nowhere"


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now

    def pass_by(self, span):
        self.now += (span + timedelta(seconds=1)).total_seconds()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_shop(open_sources, clock, monkeypatch):
    """A function: a shop with a limit, in which time passes by `clock`."""

    def make(options):
        shop = open_sources(options)
        monkeypatch.setattr(shop.intake.load, "_doubts", LimitDoubts(shop.settings.database_url, clock))
        return shop

    return make


@pytest.fixture
def use_up(redis_url):
    """A function that has Redis say that the limit is used up."""
    with redis.Redis.from_url(redis_url) as client:
        yield lambda: client.set(BUCKET, int((time.time() + 3600 * 3) * 1000))


def event(number):
    return {"id": f"evt_{number}", "type": "t"}


def test_source_that_redis_calls_over_its_limit_is_refused_no_longer_than_the_ledger_is_asked(
    open_shop, use_up, clock
):
    shop, statuses = open_shop(REFUSED.replace("4", "40")), []
    for number, span in enumerate((timedelta(0), PATIENCE, timedelta(0), RECHECK_INTERVAL)):
        clock.pass_by(span)
        use_up()
        statuses.append(shop.send(event(number)).status_code)

    assert statuses == [429, 200, 200, 200]


class NoBelief:
    def believes(self, *_):
        return False


def test_process_keeps_to_its_own_share_where_redis_is_not_believed(open_sources, use_up, monkeypatch):
    shop = open_sources(REFUSED, WEB_CONCURRENCY="2")
    monkeypatch.setattr(shop.intake.load, "_doubts", NoBelief())
    use_up()

    assert [shop.send(event(number)).status_code for number in range(4)] == [200, 200, 429, 429]


def test_source_that_is_over_its_limit_stays_refused(open_shop, clock):
    shop, statuses = open_shop(REFUSED), []
    for number in range(8):
        statuses.append(shop.send(event(number)).status_code)
        clock.pass_by(PATIENCE if number > 3 else timedelta(0))

    assert statuses == [200] * 4 + [429] * 4


def test_what_is_put_off_by_redis_alone_is_due_at_once_when_the_ledger_was_asked(open_shop, use_up, clock):
    shop, off = open_shop(HELD), []
    for number in range(2):
        use_up()
        shop.send(event(number))
        off.append(shop.rows(OFF + " WHERE event_id = %s", f"evt_{number}"))
        clock.pass_by(PATIENCE)

    assert off[0] > [(3600,)]
    assert off[1] == [(0,)]


def test_spell_begins_anew_after_a_quiet_time(open_shop, use_up, clock):
    shop, statuses = open_shop(REFUSED), []
    for number, span in enumerate((timedelta(0), PATIENCE, QUIET)):
        clock.pass_by(span)
        use_up()
        statuses.append(shop.send(event(number)).status_code)

    assert statuses == [429, 200, 429]


def test_redis_is_believed_where_the_ledger_can_not_be_asked(open_sources, clock):
    shop, doubts = open_sources(REFUSED), LimitDoubts(NOWHERE, clock)

    believed = [doubts.believes(shop.source, 1)]
    clock.pass_by(PATIENCE)

    assert [*believed, doubts.believes(shop.source, 1)] == [True, True]
