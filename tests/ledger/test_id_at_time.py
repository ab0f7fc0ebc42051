from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.ledger import id_at_time
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

START = datetime(2031, 5, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def hourly(connection):
    """Events that came every hour, some of them pruned; gives the hour of each that is left, by id."""
    for hour in range(20):
        store(connection, [new_event(f"evt_{hour}")])
        connection.execute(
            "UPDATE hookonce.events SET received_at = %s WHERE event_id = %s",
            [START + hour * HOUR, f"evt_{hour}"],
        )
    connection.execute("DELETE FROM hookonce.events WHERE event_id IN ('evt_0', 'evt_7', 'evt_8', 'evt_9')")
    rows = connection.execute("SELECT event_id, id FROM hookonce.event_states ORDER BY id")
    return {int(name.removeprefix("evt_")): number for name, number in rows}


@pytest.mark.parametrize(
    ("hours", "first"), [(-5, 1), (1, 1), (1.5, 2), (6, 6), (7.5, 10), (10, 10), (18.5, 19), (19, 19)]
)
def test_moment_is_found_by_halves(connection, hourly, hours, first):
    found = id_at_time.first_since(connection, START + hours * HOUR)

    assert [hour for hour, number in hourly.items() if number >= found] == [h for h in hourly if h >= first]


def test_moment_after_all_is_the_next_event_to_come(connection, hourly):
    assert id_at_time.first_since(connection, START + 100 * HOUR) == max(hourly.values()) + 1


def test_moment_of_an_empty_ledger_is_its_beginning(connection):
    assert id_at_time.first_since(connection, START) == 1
