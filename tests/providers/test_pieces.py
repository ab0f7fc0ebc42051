import json

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Hmac,
    Timestamp,
    any_body,
    cut,
    data_digest,
    field,
    many_events,
    position,
    split_events,
)
from hookonce.providers.kit.signing.composite_secrets import secrets_for

STEPS = ("entry", None, ("changes", "messaging"), None)


def delivered(body, **headers):
    return Delivery("POST", "", headers, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        ({"a": 1, "entry": [{"id": 1, "changes": [2, 3]}]}, [{"id": 1, "changes": [2]}, {"id": 1, "changes": [3]}]),
        ({"a": 1, "entry": [{"changes": [2]}, {"messaging": [3]}]}, [{"changes": [2]}, {"messaging": [3]}]),
        ({"a": 1, "entry": [{"b": 1, "changes": [2], "messaging": [3]}]},
         [{"b": 1, "changes": [2]}, {"b": 1, "messaging": [3]}]),
        ({"a": 1, "entry": [{"id": 1}]}, [{"id": 1}]),
        ({"a": 1, "entry": [7, {"changes": 8}]}, [7, {"changes": 8}]),
        ({"a": 1, "entry": [{"changes": []}]}, []),
        ({"a": 1, "entry": []}, []),
    ],
)  # fmt: skip
def test_cut_makes_deliveries_of_one(data, pieces):
    assert list(cut(data, STEPS)) == [{"a": 1, "entry": [piece]} for piece in pieces]


@pytest.mark.parametrize("data", [{"other": 1}, [], 1, None, "entry"])
def test_cut_leaves_whole_what_it_does_not_know(data):
    assert list(cut(data, STEPS)) == [data]


split = split_events(
    pieces=lambda data: cut(data, ("events", None)),
    id=field("$.events[0].id"),
    type=field("$.type"),
    account=field("$.shop"),
)


def test_piece_carries_what_all_events_share():
    events = split(delivered({"type": "t", "shop": 7, "events": [{"id": 1}, {"id": 2}]}))

    assert [(event.id, event.type, event.account) for event in events] == [("1", "t", "7"), ("2", "t", "7")]
    assert json.loads(events[1].raw) == events[1].data == {"type": "t", "shop": 7, "events": [{"id": 2}]}


def test_piece_that_cannot_be_read_costs_no_other():
    first, second = split(delivered({"type": "t", "events": [{"no": 1}, {"id": 2}]}))

    assert (first.type, second.id) == ("unreadable", "2")


def test_piece_is_the_same_event_in_another_batch():
    alone = split(delivered({"type": "t", "events": [{"id": 2}]}))
    batched = split(delivered({"type": "t", "events": [{"id": 1}, {"id": 2}]}))

    assert alone == batched[1:]


def test_body_that_is_not_cut_keeps_its_bytes():
    whole = split_events(
        pieces=lambda data: cut(data, ("events", None)), id=field("$.id"), type=field("$.type")
    )

    [event] = whole(delivered(b'{ "id": 1, "type": "t" }'))

    assert event.raw is None
    with pytest.raises(Rejected):
        whole(delivered({"id": 1}))


def test_alike_events_of_a_batch_differ_by_their_place():
    placed = many_events(items="$", id=position(), type=field("$.t"))

    assert [event.id for event in placed(delivered([{"t": "a"}, {"t": "a"}]))] == ["0", "1"]


def test_data_digest_leaves_volatile_places_out():
    read = many_events(items="$", id=data_digest("$.try"), type=field("$.t"))

    ids = [
        event.id
        for event in read(delivered([{"t": "a", "try": 1}, {"try": 2, "t": "a"}, {"t": "b", "try": 1}]))
    ]

    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("body", "headers", "data"),
    [
        (b' {"a":1}', {}, {"a": 1}),
        (b"[1]", {"content-type": "application/x-www-form-urlencoded"}, [1]),
        (b"a=1&b=%C3%A9", {"content-type": "application/x-www-form-urlencoded"}, {"a": "1", "b": "é"}),
        (b"<a/>", {"content-type": "text/xml"}, "<a/>"),
        (b"", {}, ""),
    ],
)
def test_any_body_is_read_as_what_it_is(body, headers, data):
    assert any_body(delivered(body, **headers)) == data


@pytest.mark.parametrize("text", ["1767225600", "1767225600000", "2026-01-01T00:00:00Z"])
def test_time_of_any_unit_is_told_by_its_form(text):
    assert Timestamp(header="t", unit="any").parse(text) == 1767225600


def test_time_that_nobody_checks_may_be_written_anyhow():
    signed = Hmac(
        header="s", signed="{timestamp}{body}", timestamp=Timestamp(header="t", unit="any", tolerance=None)
    )
    strict = Timestamp(header="t", unit="any")

    assert signed.tolerance is None
    assert signed.timestamp.parse("yesterday") == 0
    with pytest.raises(Rejected):
        strict.parse("yesterday")


@pytest.mark.parametrize(
    ("secrets", "found"),
    [
        (["k1:a", "k2:b", "k1:c:d"], ["a", "c:d"]),
        (['{"key": "k1", "secret": "e"}', "no colon", ""], ["e"]),
        (["no colon"], []),
        ([], []),
    ],
)
def test_secrets_are_those_of_the_account_that_is_named(secrets, found):
    assert secrets_for(delivered({}, **{"x-key": "k1"}), "x-key", secrets, "key", "secret") == found


@pytest.mark.parametrize(
    ("headers", "reason"), [({}, Reason.MISSING_HEADER), ({"x-key": "k3"}, Reason.BAD_SIGNATURE)]
)
def test_secrets_of_no_account_open_nothing(headers, reason):
    with pytest.raises(Rejected) as refused:
        secrets_for(delivered({}, **headers), "x-key", ["k1:a"], "key", "secret")

    assert refused.value.reason == reason


def test_batch_that_would_grow_beyond_measure_stays_whole():
    body = delivered(
        {"type": "t", "pad": "x" * 100_000, "events": [{"id": number} for number in range(1000)]}
    )

    [event] = split(body)

    assert (event.raw, len(event.data["events"])) == (None, 1000)
