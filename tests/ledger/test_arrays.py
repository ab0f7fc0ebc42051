"""A column packed here is read by PostgreSQL as the values it was made of."""

from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest

from hookonce.receiver.ledger.database.arrays import array

MOMENT = datetime(2026, 1, 15, 12, 0, 0, 123_456, tzinfo=UTC)
COLUMNS = {
    "text": ["", "a", "é€😀", None, 'quotes " and {braces}', "x" * 100_000],
    "bytea": [b"", b"\0\xff", None, bytes(range(256))],
    "bool": [True, False, None],
    "timestamptz": [MOMENT, None, MOMENT - timedelta(days=40_000), datetime(2199, 12, 31, tzinfo=UTC)],
}


@pytest.fixture(scope="module")
def postgres(servers):
    """A connection; nothing is stored."""
    with psycopg.connect(servers.database_url) as connection:
        yield connection


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("count", [0, 1, None])
def test_an_array_is_read_as_its_values(kind, count, postgres):
    values = COLUMNS[kind][:count]

    [read] = postgres.execute(f"SELECT %b::{kind}[]", [array(kind, values)]).fetchone()

    assert read == values


@pytest.mark.parametrize("value", ["same", None])
def test_an_array_of_equal_values_holds_all_of_them(value, postgres):
    rows = postgres.execute("SELECT * FROM unnest(%b::text[])", [array("text", [value] * 1000)]).fetchall()

    assert rows == [(value,)] * 1000


def test_moments_are_told_apart_to_the_microsecond_in_any_zone(postgres):
    there = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))

    [read] = postgres.execute(
        "SELECT %b::timestamptz[]", [array("timestamptz", [there, MOMENT + timedelta(microseconds=1)])]
    ).fetchone()

    assert read == [MOMENT, MOMENT + timedelta(microseconds=1)]
