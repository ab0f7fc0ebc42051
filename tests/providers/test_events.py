import copy
import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    body_digest,
    digest,
    field,
    first,
    fixed,
    form_body,
    header,
    json_in_form,
    many_events,
    one_event,
    query,
    whole,
)
from hookonce.providers.kit.events.fingerprint import delivery_fingerprint, fingerprint
from hookonce.providers.kit.reading import bodies
from hookonce.providers.kit.reading.bodies import json_body, parse_json
from hookonce.providers.kit.reading.json_paths import find, parse, put, slices, without


def delivered(body, url="", **headers):
    return Delivery("POST", url, headers, body if isinstance(body, bytes) else json.dumps(body).encode())


one = one_event(id=field("$.id"), type=field("$.type"), account=field("$.account"), occurred_at=field("$.at"))
many = many_events(items="$.events", id=field("$.id"), type=field("$.type"), account=whole("$.tenant"))


def test_event_carries_what_the_declaration_names():
    [event] = one(delivered({"id": 7, "type": "a.b", "account": 12, "at": 1767225600}))

    assert (event.id, event.type, event.account) == ("7", "a.b", "12")
    assert event.occurred_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert event.raw is None


@pytest.mark.parametrize("value", [True, False, None, "", [], {}, 1.5])
@pytest.mark.parametrize("name", ["id", "type"])
def test_event_is_bad_body_when_id_or_type_is_no_name(name, value):
    with pytest.raises(Rejected) as refused:
        one(delivered({"id": "a", "type": "b", name: value}))

    assert refused.value.reason == Reason.BAD_BODY


@pytest.mark.parametrize("value", [True, None, "", [], {}])
def test_event_goes_without_an_account_that_is_no_name(value):
    [event] = one(delivered({"id": "a", "type": "b", "account": value, "at": value}))

    assert (event.account, event.occurred_at) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"\xff", b"\xff\xfe{\x00}\x00", "{}".encode("utf-16"), b'{"id":NaN}', b'{"id":-Infinity}',
        b'{"x":1e999}', b"1" * 4301, b"[" * 100_000, b'{"a":' * 100_000, b'{"a":1} x',
        b"\xef\xbb\xbf\xef\xbb\xbf{}", b'"\x00"',
    ],
)  # fmt: skip
def test_body_is_bad_body_when_it_is_not_strict_json(body):
    with pytest.raises(Rejected) as refused:
        one(delivered(body))

    assert refused.value.reason == Reason.BAD_BODY
    assert len(refused.value.detail) < 100


@pytest.mark.parametrize(
    ("body", "event_id"),
    [
        (b'\xef\xbb\xbf{"id":"a","type":"b"}', "a"),
        (b'{"id":"a","type":"b","id":"last"}', "last"),
        (b'{"id":"\\ud800","type":"\\udfff"}', "\ud800"),
        (b'{"id":"a\\u0000b","type":"b"}', "a\0b"),
        (b'{"id":' + b"9" * 4300 + b',"type":"b"}', "9" * 4300),
        (b' [{"id":"x"}] '.strip(), None),
    ],
)
def test_body_is_read_where_json_allows_it(body, event_id):
    if event_id is None:
        with pytest.raises(Rejected):
            one(delivered(body))
    else:
        assert one(delivered(body))[0].id == event_id


@pytest.mark.parametrize(
    ("pick", "found"),
    [
        (header("X-Other", "X-Id"), "h"),
        (query("q"), "1"),
        (first(field("$.none"), header("x-id")), "h"),
        (first(field("$.none"), fixed("f")), "f"),
        (first(field("$.list"), field("$.empty"), fixed("f")), "f"),
        (field("$.list[1].a"), "deep"),
        (field("$['odd.key']"), "odd"),
    ],
)
def test_pick_finds_its_place(pick, found):
    read = one_event(id=pick, type=fixed("t"))
    body = {"list": [0, {"a": "deep"}], "odd.key": "odd", "empty": ""}

    assert read(delivered(body, "https://h/p?q=1", **{"x-id": "h"}))[0].id == found


def test_missing_id_header_is_missing_header():
    with pytest.raises(Rejected) as refused:
        one_event(id=header("x-id"), type=fixed("t"))(delivered({}))

    assert refused.value.reason == Reason.MISSING_HEADER


def test_digest_depends_on_every_value_and_on_nothing_else():
    read = one_event(id=digest(field("$.a"), field("$.b")), type=fixed("t"))
    ids = [
        read(delivered(body))[0].id
        for body in ({"a": 1, "b": "x"}, {"b": "x", "a": 1, "c": 2}, {"a": "1", "b": "x"})
    ]

    assert ids[0] == ids[1] != ids[2]
    with pytest.raises(Rejected):
        read(delivered({"c": 1}))


def test_body_digest_leaves_out_what_changes_between_attempts():
    read = one_event(id=body_digest("$.attempt"), type=fixed("t"))

    assert read(delivered({"a": 1, "attempt": 1}))[0].id == read(delivered({"attempt": 2, "a": 1}))[0].id


@pytest.mark.parametrize(
    ("reader", "body"),
    [
        (form_body, b"id=a&type=b+c&id=d"),
        (json_in_form("payload"), b"payload=%7B%22id%22%3A%22d%22%2C%22type%22%3A%22b+c%22%7D"),
    ],
)
def test_form_is_read_as_the_sender_means_it(reader, body):
    [event] = one_event(id=field("$.id"), type=field("$.type"), read=reader)(delivered(body))

    assert (event.id, event.type) == ("d", "b c")


@pytest.mark.parametrize("body", [b"id=%ff", b"\xff", b"a=1&" * 2000, b"other=1"])
def test_form_is_bad_body_when_it_cannot_be_read(body):
    with pytest.raises(Rejected, match="bad_body"):
        one_event(id=field("$.id"), type=field("$.type"), read=form_body)(delivered(body))


def test_batch_gives_each_event_its_own_bytes():
    body = b'{"tenant": "t", "events": [ {"id":1,"type":"a","n":10.10} , {"id": "2", "type": "b", "z": "\\ud83d"} ]}'

    events = many(delivered(body))

    assert [(event.id, event.type, event.account) for event in events] == [("1", "a", "t"), ("2", "b", "t")]
    assert [event.raw for event in events] == [
        b'{"id":1,"type":"a","n":10.10}',
        b'{"id": "2", "type": "b", "z": "\\ud83d"}',
    ]


@pytest.mark.parametrize("element", ["1", "null", "[]", '{"id":true,"type":"a"}', '{"type":"a"}', '"x"'])
def test_batch_element_that_cannot_be_read_is_seen_and_not_lost(element):
    events = many(delivered(f'{{"events":[{element},{{"id":"ok","type":"a"}},{element}]}}'.encode()))

    assert [event.type for event in events] == ["unreadable", "a", "unreadable"]
    assert events[0].raw == element.encode()
    assert events[0].id == events[2].id
    assert len(events[0].id) == 64


@pytest.mark.parametrize(
    ("items", "body", "ids"),
    [
        ("$", [{"id": "a", "type": "t"}, {"id": "b", "type": "t"}], ["a", "b"]),
        ("$", {"id": "a", "type": "t"}, ["a"]),
        ("$.e", {"e": []}, []),
        ("$.e", {"e": {"id": "a", "type": "t"}}, ["a"]),
        (
            "$.e[*].m",
            {"e": [{"m": [{"id": "a", "type": "t"}]}, {}, {"m": [{"id": "b", "type": "t"}]}]},
            ["a", "b"],
        ),
        ("$.e[].m", {"e": []}, []),
    ],
)
def test_batch_is_found_wherever_the_sender_puts_it(items, body, ids):
    read = many_events(items=items, id=field("$.id"), type=field("$.type"))

    assert [event.id for event in read(delivered(body))] == ids


@pytest.mark.parametrize("body", [{}, [], {"other": 1}])
def test_batch_without_its_list_is_bad_body(body):
    with pytest.raises(Rejected, match=r"bad_body: \$\.events is missing"):
        many(delivered(body))


@pytest.mark.parametrize("read", [one, many])
def test_sample_has_the_id_and_type_it_was_made_with(read):
    [event] = read(delivered(read.sample("evt_1", "a.b")))

    assert (event.id, event.type) == ("evt_1", "a.b")


@pytest.mark.parametrize("path", ["", "id", "$id", "$.", "$..a", "$.a[", "$.a[-1]", "$[a]", "x$.a"])
def test_path_is_refused_when_it_is_none(path):
    with pytest.raises(ValueError, match="is not a path"):
        parse(path)


@pytest.mark.parametrize("data", [None, 1, "text", [], {}, {"a": "text"}, {"a": [1]}, {"a": {"b": None}}])
def test_path_that_leads_nowhere_finds_none(data):
    assert find(data, parse("$.a.b")) is None
    assert find(data, parse("$.a[7].b")) is None


def test_without_removes_every_named_place_and_nothing_else():
    data = {
        "keep": 1,
        "list": [{"n": 1, "m": 2}, {"n": 3}, 4],
        "a": {"b": {"c": 1}},
        "two": [{"n": 1}, {"n": 2}],
    }
    was, left = copy.deepcopy(data), data

    for path in ("$.list[*].n", "$.a.b.c", "$.two[1].n", "$.two[7].n", "$.none.x", "$.keep.x", "$"):
        left = without(left, parse(path))

    assert left == {"keep": 1, "list": [{"m": 2}, {}, 4], "a": {"b": {}}, "two": [{"n": 1}, {}]}
    assert data == was


def test_plant_makes_what_find_finds():
    steps = parse("$.a[1].b")

    assert find(put(None, steps, "x"), steps) == "x"


def test_slices_take_the_last_of_two_equal_keys():
    assert slices('{"e" : [1], "e":[ 2 ,3 ] }', parse("$.e[*]")) == [(2, "2"), (3, "3")]


@pytest.mark.parametrize(
    "text",
    [
        '{"e":[]}',
        '{ "e" :\t[ null , 1.10,"a,]" , {"e":[2]}\r\n, [ [3] ] ]}',
        '{"e":{"not":"it"},"e":[1e2, "\\ud800"],"f":[9]}',
    ],
)
def test_elements_are_cut_alike_at_once_and_out_of_the_list(text):
    [(value, raw)] = slices(text, parse("$.e"))

    assert slices(text, parse("$.e[*]")) == slices(raw, parse("$[*]"))
    assert [element for element, _ in slices(text, parse("$.e[*]"))] == value


@pytest.mark.parametrize(
    ("volatile", "same"),
    [
        (("$.n",), (b'{"a":1,"n":1}', b'{ "n":2, "a":1 }')),
        (("$.l[*].n",), (b'{"l":[{"n":1}]}', b'{"l":[{"n":2}]}')),
        (("$.n",), (b"not json", b"not json")),
        ((), (b'{"a":1}', b'{"a":1}')),
    ],
)
def test_fingerprint_is_the_same_but_for_volatile_places(volatile, same):
    assert fingerprint(same[0], volatile) == fingerprint(same[1], volatile)


@pytest.mark.parametrize(
    ("volatile", "other"),
    [
        ((), (b'{"a":1}', b'{"a": 1}')),
        (("$.n",), (b'{"a":1}', b'{"a":2}')),
        (("$.n",), (b'{"a":1}', b'{"a":"1"}')),
        (("$.n",), (b"x", b"y")),
        (("$.n",), (b"[" * 100_000, b"[" * 99_999)),
    ],
)
def test_fingerprint_differs_for_anything_else(volatile, other):
    assert fingerprint(other[0], volatile) != fingerprint(other[1], volatile)


@pytest.mark.parametrize("body", [b'{"id":"1","n":{"m":2},"l":[1.50]}', b"not json", b"[" * 100_000])
def test_delivery_has_the_fingerprint_of_its_body_and_is_parsed_once(body, monkeypatch):
    parsed = []
    monkeypatch.setattr(bodies, "parse_json", lambda text: parsed.append(text) or parse_json(text))
    delivery = Delivery("POST", "", {}, body)

    with suppress(Rejected):
        json_body(delivery)
    made = [delivery_fingerprint(delivery, ["$.n.m"]) for _ in range(2)]

    assert made == [fingerprint(body, ["$.n.m"])] * 2
    assert len(parsed) == 2  # by the delivery's reading and by `fingerprint`
    assert delivery_fingerprint(delivery) == hashlib.sha256(body).digest()


def test_delivery_with_another_body_has_another_fingerprint():
    delivery = Delivery("POST", "", {}, b'{"a":1}')
    delivery_fingerprint(delivery, ["$.n"])

    assert delivery_fingerprint(replace(delivery, body=b'{"a":2}'), ["$.n"]) == fingerprint(
        b'{"a":2}', ["$.n"]
    )


def test_batch_raw_keeps_digits_that_floats_would_lose():
    [event] = many(delivered(b'{"events":[{"id":"a","type":"t","amount":0.10000000000000000001}]}'))

    assert json.loads(event.raw, parse_float=Decimal)["amount"] == Decimal("0.10000000000000000001")
