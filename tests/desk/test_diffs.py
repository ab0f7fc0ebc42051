"""Which paths of a body differ from those of the last event of its kind that was done."""

import itertools
import json

import pytest

from hookonce.receiver.desk.diffs import MAX_CHANGES, NotJson, changes, parsed


def told(before, after):
    return [
        (each.kind, each.path, each.before, each.after) for each in changes(parsed(before), parsed(after))
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b'{"a": 1, "b": [2]}', b'{"b":[2],"a":1}', []),
        (
            b'{"data": {"object": {"amount": 100}}}',
            b'{"data": {"object": {"amount": 250}}}',
            [("changed", "$.data.object.amount", "100", "250")],
        ),
        (b"{}", b'{"a": {"b": null}}', [("added", "$.a", None, '{"b": null}')]),
        (b'{"a": "x"}', b"{}", [("removed", "$.a", '"x"', None)]),
        (
            b'{"a": 1, "z": 2}',
            b'{"n": 3, "a": 4}',
            [("added", "$.n", None, "3"), ("changed", "$.a", "1", "4"), ("removed", "$.z", "2", None)],
        ),
        (
            b'{"l": [1, {"k": 2}]}',
            b'{"l": [1, {"k": 3}, "x"]}',
            [("changed", "$.l[1].k", "2", "3"), ("added", "$.l[2]", None, '"x"')],
        ),
        (
            b'{"l": [1, 2]}',
            b'{"l": []}',
            [("removed", "$.l[0]", "1", None), ("removed", "$.l[1]", "2", None)],
        ),
        (b'{"odd key": 1}', b'{"odd key": 2}', [("changed", '$["odd key"]', "1", "2")]),
        (b'{"a.b": 1}', b'{"a.b": 2}', [("changed", '$["a.b"]', "1", "2")]),
        (b'{"a": 1}', b'{"a": 1.0}', [("changed", "$.a", "1", "1.0")]),
        (b'{"a": 1}', b'{"a": true}', [("changed", "$.a", "1", "true")]),
        (b'{"a": 1}', b'{"a": "1"}', [("changed", "$.a", "1", '"1"')]),
        (b'{"a": {}}', b'{"a": []}', [("changed", "$.a", "{}", "[]")]),
        (b'{"a": null}', b"{}", [("removed", "$.a", "null", None)]),
        (b"[]", b"{}", [("changed", "$", "[]", "{}")]),
        ('{"a": "\u202e"}'.encode(), b'{"a": "b"}', [("changed", "$.a", '"\\u202e"', '"b"')]),
    ],
)
def test_bodies_differ_at_these_paths(before, after, expected):
    assert told(before, after) == expected


@pytest.mark.parametrize("body", [b"", b"a=1&b=2", b"\xff", b"[" * 99_999, b'{"a":'])
def test_body_that_is_not_json_is_not_compared(body):
    with pytest.raises(NotJson):
        parsed(body)


def test_numbers_of_any_length_are_compared_as_written():
    long = b"9" * 9_999

    ((kind, path, before, after),) = told(b"[%b]" % long, b"[1]")

    assert (kind, path, after) == ("changed", "$[0]", "1")
    assert before.endswith("…")
    assert len(before) <= 120


def test_differences_of_hostile_bodies_stay_small_and_are_found_lazily():
    key = "k" * 100_000
    wide = json.dumps({key: dict.fromkeys(map(str, range(50_000)), "v" * 9)}).encode()

    found = list(itertools.islice(changes(parsed(b'{"%b": {}}' % key.encode()), parsed(wide)), 300))

    assert len(found) == 300
    assert max(len(each.path) for each in found) <= 300


def test_deeply_nested_bodies_are_compared():
    deep = 900

    ((kind, path, *_),) = told(b"[" * deep + b"1" + b"]" * deep, b"[" * deep + b"2" + b"]" * deep)

    assert (kind, path[:4]) == ("changed", "$[0]")


def bodies(here, *pairs):
    numbers = [
        here.deliver(f"evt_{n}", body=body, status=status)[0] for n, (body, status) in enumerate(pairs)
    ]
    return here.ask("diff_event", event=numbers[-1], scope="read+bodies").json, numbers


def test_event_is_compared_with_the_last_of_its_kind_that_was_done(here):
    diff, numbers = bodies(
        here,
        (b'{"amount": 1}', "done"),
        (b'{"amount": 2}', "done"),
        (b'{"amount": 3}', "dead"),
        (b'{"amount": 4}', "dead"),
    )

    assert (diff["event"], diff["compared_with"], diff["why_not"]) == (numbers[3], numbers[1], None)
    assert diff["changes"] == [{"path": "$.amount", "kind": "changed", "before": "2", "after": "4"}]


def test_diff_stops_at_so_many_paths_and_says_so(here):
    many = json.dumps(dict.fromkeys(map(str, range(MAX_CHANGES + 1)), 1)).encode()

    diff, _ = bodies(here, (b"{}", "done"), (many, "dead"))

    assert (len(diff["changes"]), diff["is_cut"]) == (MAX_CHANGES, True)


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([(b"{}", "dead")], "no event of this source and type that came before it is done"),
        ([(b"{}", "dead"), (b"{}", "dead")], "no event of this source and type that came before it is done"),
        ([(b"a=1", "done"), (b"{}", "dead")], "the body of event 1 is not JSON"),
        ([(b"{}", "done"), (b"a=1", "dead")], "the body of event 2 is not JSON"),
        ([(b'"%b"' % (b"x" * 1_000_001), "done"), (b"{}", "dead")], "has more than 1 MB"),
    ],
)
def test_diff_says_why_nothing_is_compared(here, pairs, why):
    diff, numbers = bodies(here, *pairs)

    for place, number in enumerate(numbers, 1):
        why = why.replace(f"event {place} ", f"event {number} ")
    assert why in diff["why_not"]
    assert diff["changes"] == []


def test_events_of_another_type_or_source_are_not_compared_with(here):
    here.deliver("evt_a", type="other", status="done")
    here.deliver("evt_b", source="github", status="done")
    (number,) = here.deliver("evt_c", status="dead")

    assert here.ask("diff_event", event=number).json["compared_with"] is None
