import json
import time
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.ledger.queries import body_search, events, needles
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.store import store
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.new_event import new_event

LONG = timedelta(seconds=20)
BODY = json.dumps(
    {
        "data": {
            "object": {"customer": "cus_1", "amount": 4200, "é": True},
            "lines": [{"id": "a"}, {"id": "b"}],
        }
    }
).encode()


@pytest.mark.parametrize(
    ("typed", "is_there"),
    [
        ("cus_1", True),
        ("cus_2", False),
        ("CUS_1", False),
        ('"amount"', True),
        ("é", True),
        ("$.data.object.customer=cus_1", True),
        ("$.data.object.customer = cus_1", True),
        ('$.data.object.customer="cus_1"', True),
        ("$.data.object.customer=cus", False),
        ("$.data.object.customer=c*1", True),
        ("$.data.object.amount=4200", True),
        ("$.data.object.amount=420", False),
        ("$['data'].object['é']=true", True),
        ("$.data.lines[*].id=b", True),
        ("$.data.lines[0].id=b", False),
        ("$.data.lines", True),
        ("$.data.lines=a", False),
        ("$.customer=cus_1", False),
    ],
)
def test_needle_is_in_a_body_that_has_it(typed, is_there):
    needle = needles.read(typed)

    assert needle.is_in(BODY) is is_there
    if is_there:
        assert not needle.spellings or any(each in BODY for each in needle.spellings)


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("*", "", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*b*b*", "b", False),
        ("*b*b*", "abcb", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*c*b", "a-b-c", False),
        ("ab*ba", "aba", False),
        ("a.c", "abc", False),
        ("a*", "a\n\n", True),
    ],
)
def test_star_stands_for_any_text(pattern, value, fits):
    assert needles.read(f"$.a={pattern}").is_in(json.dumps({"a": value}).encode()) is fits


def test_many_stars_take_no_longer_than_one():
    body = json.dumps({"a": "a" * 200_000}).encode()
    began = time.thread_time()

    assert not needles.read("$.a=" + "*a" * 30 + "*b").is_in(body)
    assert time.thread_time() - began < 1


def test_needle_keeps_the_digits_of_a_number():
    assert needles.read("$.amount=10.10").is_in(b'{"amount": 10.10}')
    assert not needles.read("$.amount=10.1").is_in(b'{"amount": 10.10}')


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"[" * 100_000, b"not json"])
def test_needle_is_in_no_body_that_is_not_json(body):
    assert not needles.read("$.a=b").is_in(body)


def test_needle_that_is_no_path_is_told():
    with pytest.raises(ValueError, match="is not a path"):
        needles.read("$data=1")


@pytest.fixture
def connection(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def fill(connection, count, seal=None):
    events = [
        new_event(f"evt_{n}", body=json.dumps({"customer": f"cus_{n}", "all": 1}).encode())
        for n in range(count)
    ]
    if seal:
        events = [sealed(each, seal) for each in events]
    store(connection, events)


def search(connection, typed, keyring=OFF, wanted=None, limit=50, before=None, budget=LONG):
    return body_search.search(
        connection,
        keyring,
        wanted or Filter(),
        needles.read(typed),
        limit=limit,
        before=before,
        budget=budget,
    )


@pytest.mark.parametrize("typed", ["cus_7", "$.customer=cus_7"])
def test_search_finds_what_a_body_holds(connection, typed):
    fill(connection, 20)

    found = search(connection, typed)

    assert [row.event_id for row in found.rows] == ["evt_7"]
    assert (found.rest, found.looked_into) == (None, 20)


def test_search_gives_the_newest_first_and_goes_on_without_gap_or_repeat(connection):
    fill(connection, 450)
    pages, before = [], None

    while True:
        found = search(connection, "$.all=1", limit=70, before=before)
        pages.append([row.id for row in found.rows])
        if found.rest is None:
            break
        before = found.rest

    assert [number for page in pages for number in page] == list(range(450, 0, -1))
    assert {len(page) for page in pages[:-1]} == {70}


def test_search_of_large_bodies_stops_between_two_of_them(connection, monkeypatch):
    monkeypatch.setattr(body_search, "MAX_BYTES", 40)
    fill(connection, 90)

    first = search(connection, "$.all=1", budget=timedelta(0))
    rest = search(connection, "$.all=1", before=first.rest, limit=100)

    assert first.looked_into < 10
    ids = [row.event_id for row in [*first.rows, *rest.rows]]
    assert sorted(ids) == sorted(f"evt_{n}" for n in range(90))


def test_search_stops_in_time_and_says_how_far_it_came(connection):
    fill(connection, 300)

    first = search(connection, "nowhere", budget=timedelta(0))
    second = search(connection, "$.customer=cus_1", before=first.rest)

    assert first.rows == []
    assert first.rest == 201
    assert first.back_to is not None
    assert [row.event_id for row in second.rows] == ["evt_1"]


def test_search_opens_sealed_bodies_only_with_their_key(connection):
    ours, other = Keyring([bytes(range(32))]), Keyring([bytes(32)])
    fill(connection, 5, ours)

    with_key = search(connection, "$.customer=cus_3", ours)
    without = search(connection, "$.customer=cus_3", other)

    assert [row.event_id for row in with_key.rows] == ["evt_3"]
    assert (with_key.sealed, with_key.closed) == (5, 0)
    assert (without.rows, without.closed) == ([], 5)


def test_search_is_in_the_events_of_a_filter(connection):
    fill(connection, 3)
    store(connection, [new_event("other", body=b'{"all": 1}', source="github")])

    assert [row.event_id for row in search(connection, "$.all=1", wanted=Filter(source="github")).rows] == [
        "other"
    ]


def test_search_leaves_out_what_is_too_large(connection, monkeypatch):
    monkeypatch.setattr(body_search, "MAX_BYTES", 60)
    store(connection, [new_event("small", body=b"cus_1"), new_event("large", body=b"cus_1" * 20)])

    found = search(connection, "cus_1")

    assert [row.event_id for row in found.rows] == ["small"]
    assert found.large == 1


def test_page_of_events_stops_in_time_and_goes_on_from_there(connection, monkeypatch):
    monkeypatch.setattr(events, "NEWEST", 10)
    store(connection, [new_event("evt_old", type="rare")])
    fill(connection, 100)
    rare = Filter(type="rare")

    first = events.newest(connection, rare, 5, None, timedelta(0))
    rest = events.newest(connection, rare, 5, first.rest, LONG)

    assert (first.rows, first.rest) == ([], 92)
    assert first.back_to is not None
    assert [row.event_id for row in rest.rows] == ["evt_old"]
    assert rest.rest is None


def test_page_of_events_goes_both_ways(connection):
    fill(connection, 30)

    page = events.newest(connection, Filter(), 5, 20, LONG)
    back = events.oldest_after(connection, Filter(), 5, 14, LONG)

    assert [row.id for row in page.rows] == [19, 18, 17, 16, 15] == [row.id for row in back]
