from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_filter import Filter, sources
from hookonce.receiver.ledger.queries.event_lookup import Ambiguous, find
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def ids(connection):
    events = [
        new_event("evt_1"),
        new_event("evt_12"),
        new_event("evt_2x"),
        new_event("42abc", source="github"),
        new_event("urn:a:1", source="sns"),
        new_event("😀b", source="sns"),
    ]
    return {key[1]: row.id for key, row in store(connection, events).items()}


@pytest.mark.parametrize(
    ("reference", "event_id"),
    [
        ("stripe:evt_1", "evt_1"),
        ("stripe:evt_2", "evt_2x"),
        ("evt_1", "evt_1"),
        ("evt_2", "evt_2x"),
        ("42a", "42abc"),
        ("urn:a", "urn:a:1"),
        ("sns:urn:", "urn:a:1"),
        ("😀", "😀b"),
        ("github:evt_1", None),
        ("evt_3", None),
        ("EVT_1", None),
        ("evt%", None),
        ("", None),
        (":", None),
        ("99999", None),
        ("4", None),
        ("a\0b", None),
        ("a\udc80", None),
    ],
)
def test_event_is_found_by_the_beginning_of_its_id(connection, ids, reference, event_id):
    if reference == "4":  # a number is a ledger id, whatever else begins with it
        connection.execute("DELETE FROM hookonce.events WHERE id = 4")

    assert find(connection, reference) == ids.get(event_id)


@pytest.mark.usefixtures("ids")
@pytest.mark.parametrize("reference", ["evt", "stripe:ev"])
def test_event_of_an_ambiguous_name_is_an_error_with_the_candidates(connection, reference):
    with pytest.raises(Ambiguous, match=r"stripe:evt_2x \(\d+\), stripe:evt_12 \(\d+\), stripe:evt_1 "):
        find(connection, reference)


@pytest.mark.usefixtures("ids")
def test_sources_are_named_once_each(connection):
    assert sources(connection) == ["github", "sns", "stripe"]


def test_events_are_those_of_the_filter(connection, ids):
    connection.execute("UPDATE hookonce.events SET account = 'acct_1' WHERE event_id = '42abc'")
    connection.execute("UPDATE hookonce.events SET received_at = '2026-01-31' WHERE id <= %s", [ids["evt_1"]])
    until = connection.execute("SELECT timestamptz '2026-02-01'").fetchone()[0]

    def matching(**wanted):
        return [row.event_id for row in events.events(connection, Filter(**wanted))]

    assert matching(event_id="evt_") == ["evt_2x", "evt_12", "evt_1"]
    assert matching(event_id="evt_", source="github") == []
    assert matching(account="acct_1") == ["42abc"]
    assert matching(until=until, source="stripe") == ["evt_1"]
    assert matching(since=until) == ["evt_2x", "evt_12"]
    older = events.events(connection, Filter(), 2, ids["evt_2x"])
    assert [row.event_id for row in older] == ["evt_12", "evt_1"]


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 9])
@pytest.mark.parametrize(
    "wanted", [Filter(type="rare"), Filter(type="rare", source="stripe")], ids=["one", "two"]
)
def test_events_are_found_far_and_near_in_order(connection, monkeypatch, limit, wanted):
    monkeypatch.setattr(events, "NEWEST", 2)
    monkeypatch.setattr(events, "WALKED", 3)
    monkeypatch.setattr(events, "PAGE_SIZE", 2)
    store(connection, [new_event(f"evt_{n}", type="rare" if n % 3 == 0 else "usual") for n in range(8)])
    connection.execute("DELETE FROM hookonce.events WHERE event_id = 'evt_4'")

    found = [row.event_id for row in events.events(connection, wanted, limit)]

    assert found == ["evt_6", "evt_3", "evt_0"][: limit or None]


@pytest.mark.parametrize("hour", range(-1, 8))
def test_events_of_a_span_of_time_are_the_same_by_ids_and_by_times(connection, hour):
    store(connection, [new_event(f"evt_{n}") for n in range(7)])
    connection.execute(
        "UPDATE hookonce.events SET received_at = '2026-01-31 00:00Z'::timestamptz + id * interval '1 hour'"
    )
    connection.execute(
        "UPDATE hookonce.events SET received_at = received_at - interval '64 minutes' WHERE id = 4"
    )  # a clock
    connection.execute("DELETE FROM hookonce.events WHERE id = 2")
    moment = datetime(2026, 1, 31, tzinfo=UTC) + timedelta(hours=hour)

    after = {row.id for row in events.events(connection, Filter(since=moment))}
    until = {row.id for row in events.events(connection, Filter(until=moment))}

    assert after | until == {1, 3, 4, 5, 6, 7}
    assert until == {
        row[0]
        for row in connection.execute("SELECT id FROM hookonce.event_states WHERE received_at < %s", [moment])
    }
