import threading
from datetime import timedelta

import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.stats import activity, counters, source_activity
from hookonce.receiver.ledger.stats.counters import MAX_TYPES, Kind, Tally
from hookonce.receiver.ledger.stats.redeliveries import add_redeliveries
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import end_events
from tests.support.waiting import PATIENT, at_once

HELD = Tally(Kind.MET, "stripe", "held")


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


def test_counter_is_a_sum_since_ever_and_one_of_this_minute(connection):
    counters.add(connection, {Tally(Kind.CONFLICT, "stripe"): 2, HELD: 1})
    counters.add(connection, {Tally(Kind.CONFLICT, "stripe"): 3})

    assert counters.totals(connection) == {Tally(Kind.CONFLICT, "stripe"): 5, HELD: 1}
    assert source_activity.recent(connection, timedelta(minutes=5), [Kind.CONFLICT]) == {"stripe": 5}


def test_counter_loses_nothing_where_many_add_at_once(connection, database_url):
    def add():
        with connections.connect(database_url, **PATIENT) as own:
            barrier.wait()
            for _ in range(20):
                counters.add(own, {HELD: 1, Tally(Kind.CONFLICT, "stripe"): 1, Tally(Kind.REFUSED, "a"): 1})

    barrier = threading.Barrier(4, timeout=20)
    at_once(*[add] * 4)

    assert set(counters.totals(connection).values()) == {80}


def test_counter_is_in_no_chart(connection):
    counters.add(connection, {HELD: 1, Tally(Kind.REFUSED, "stripe"): 1})
    counters.add(connection, {Tally(Kind.ENDED, "shop.credit", "done"): 1})

    since = connection.execute("SELECT now() - interval '1 hour'").fetchone()[0]

    assert activity.rates(connection, since, timedelta(minutes=1)) == []
    assert activity.totals(connection) == []


def test_duplicates_are_counted_by_the_status_they_met_and_by_type(connection):
    rows = store(connection, [new_event("a"), new_event("b", type="with.many.dots")])
    end_events(connection, "done", [rows["stripe", "a"].id])

    add_redeliveries(connection, {("stripe", "a"): 2, ("stripe", "b"): 1, ("stripe", "unknown"): 4})

    assert counters.totals(connection) == {
        Tally(Kind.MET, "stripe", "done"): 2,
        Tally(Kind.MET, "stripe", "received"): 1,
        Tally(Kind.TYPE, "stripe", "invoice.paid"): 2,
        Tally(Kind.TYPE, "stripe", "with.many.dots"): 1,
    }


def test_duplicates_are_told_apart_by_a_few_types_whatever_is_sent(connection):
    counters.add_types(connection, {("stripe", f"type-{n}"): 1 for n in range(MAX_TYPES - 1)})
    counters.add_types(connection, {("stripe", "x" * 10_000): 1, ("other", "type-1"): 1})
    counters.add_types(
        connection, {("stripe", f"more-{n}"): 1 for n in range(50)} | {("stripe", "type-0"): 1}
    )

    found = counters.totals(connection)
    types = {tally.detail: number for tally, number in found.items() if tally.subject == "stripe"}
    assert len(types) == MAX_TYPES + 1
    assert (types[""], types["type-0"]) == (50, 2)
    assert max(map(len, types)) == counters.MAX_TYPE_LENGTH


def test_types_are_kept_by_no_minute(connection):
    counters.add_types(connection, {("stripe", "invoice.paid"): 1})

    assert connection.execute("SELECT minutes FROM hookonce.activity").fetchall() == [(0,)]
