"""Captured deliveries with one place of the body replaced by something odd: refused or read, never anything else."""

import json
from dataclasses import replace
from itertools import islice

from hookonce.providers.kit.conformance.junk import put_junk
from tests.support.captured import captured
from tests.support.for_each import for_each


def is_json(body):
    try:
        return isinstance(json.loads(body), (dict, list))
    except ValueError:  # JSON lines, say
        return False


def genuine_json():
    return [case for case in captured() if case.is_genuine and is_json(case.delivery.body)]


ODD = [
    None,
    True,
    0,
    -1.5,
    10**30,
    "",
    "x",
    "\ud800",
    "\x00",
    [],
    [[]],
    [None],
    {},
    {"id": []},
    {"a": {"id": 1}},
]
PLACES = 60


def places(data, path=()):
    yield path
    for step, value in (
        data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    ):
        yield from places(value, (*path, step))


def put(data, path, value):
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = put(data[path[0]], path[1:], value)
    return copy


@for_each(genuine_json)
def test_sender_reads_or_refuses_a_body_with_something_odd_in_it(case):
    data = json.loads(case.delivery.body)

    for path in islice(places(data), PLACES):
        for value in ODD:
            body = json.dumps(put(data, path, value)).encode()
            put_junk(replace(case, delivery=replace(case.delivery, body=body)), case.delivery.headers, body)
