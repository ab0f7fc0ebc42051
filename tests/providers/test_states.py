import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit import about, about_each, field, header
from hookonce.providers.kit.conformance import check_states
from hookonce.providers.kit.events.fields import EventView
from hookonce.providers.kit.events.subjects import LONGEST_ENTITY, Subject, version_of
from tests.support.captured import captured, captured_of
from tests.support.catalogues.facts import FACTS
from tests.support.catalogues.shapes import filled, read
from tests.support.catalogues.states import ENVELOPES, STATES
from tests.support.for_each import for_each

LATER = timedelta(seconds=61)
MADE = re.compile(r"created(_at|At|_on|_time|Time|On)?|create_time")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def delivery_of(case, kind, seed, later=timedelta()):
    """A delivery of a kind: its object was made at the case's time, and changed `later`."""
    name, now = case.provider.name, case.now + later
    shape = read(name).kinds[kind]
    body = unmoved(filled(shape, seed, now), filled(shape, seed, case.now), ENVELOPES.get(name, "$"))
    told = kind.partition("." if FACTS[name].word else "#")[0]
    made = case.provider.delivery(
        json.dumps(body).encode(),
        case.signing,
        now,
        event_id="e-1",
        type=told,
        url="https://hooks.example.com",
    )
    return replace(made, headers={**case.delivery.headers, **made.headers}), now


def unmoved(moved, still, envelope, at="$"):
    if isinstance(moved, list):
        return [unmoved(new, old, envelope, at) for new, old in zip(moved, still, strict=True)]
    if not isinstance(moved, dict):
        return moved
    return {
        key: still[key]
        if MADE.fullmatch(key) and at != envelope
        else unmoved(new, still[key], envelope, f"{at}.{key}")
        for key, new in moved.items()
    }


def states_of(name):
    older, newer = STATES[name]
    case = next(case for case in captured_of(name) if case.is_genuine and case.signing and reads(case, older))
    return (
        case.provider,
        delivery_of(case, older, "a"),
        delivery_of(case, newer, "a", LATER),
        delivery_of(case, newer, "b", LATER),
    )


def reads(case, kind):
    """Whether a sender's kind is read as it comes to this account: some have two ways to send."""
    delivery, now = delivery_of(case, kind, "a")
    (event,) = case.events(delivery)
    view = EventView(delivery, event.data, event.data)
    return kind.startswith(event.type) or case.provider.subject.of(view, event.type, now) is not None


@for_each(list(STATES))
def test_two_states_of_one_object_have_one_entity_and_rising_versions(name):
    check_states(*states_of(name))


def test_subjects_are_declared_where_a_named_catalogue_holds_two_states():
    declared = {case.provider.name for case in captured() if case.provider.subject is not None}

    assert declared == set(STATES)
    assert len(declared) >= 25
    assert all(read(name).source for name in declared)


@pytest.mark.parametrize(
    "subject",
    [
        None,
        about(entity=("$.type",), version="$.created"),
        about(entity=("$.data.object.object",), version="$.created"),
        about(entity=("$.data.object.id",), version="$.data.object.created"),
        about(entity=("$.data.object.id",), version="$.data.object.missing"),
    ],
    ids=["none", "type", "kind of object", "made", "missing"],
)
def test_check_of_states_catches_a_wrong_subject(subject):
    provider, older, newer, other = states_of("stripe")
    provider = replace(provider, subject=subject)

    with pytest.raises(AssertionError):
        check_states(provider, older, newer, other)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (7, "", 7),
        ("7", "", 7),
        (0, "", 0),
        (2**63 - 1, "", 2**63 - 1),
        (2**63, "", None),
        ("9223372036854775808", "", None),
        (-1, "", None),
        ("-1", "", None),
        (1.0, "", None),
        (float("nan"), "", None),
        (True, "", None),
        ([1], "", None),
        ({}, "", None),
        (None, "", None),
        ("", "", None),
        ("\u0661", "", None),
        (1767225600, "s", 1767225600_000_000),
        (1767225600_123, "ms", 1767225600_123_000),
        (4070908800, "s", None),
        (2**60, "s", None),
        ("2026-01-01T00:00:00Z", "", 1767225600_000_000),
        ("2026-01-01T00:00:00Z", "s", 1767225600_000_000),
        ("2026-01-01 00:00:00 UTC", "", 1767225600_000_000),
        ("2026-01-01T01:00:00.000001+0100", "", 1767225600_000_001),
        ("2026-01-01T00:00:00.1234567Z", "", 1767225600_123_456),
        ("2026-01-02T00:00:00Z", "", 1767225600_000_000 + 86400 * 10**6),
        ("2026-01-02T00:00:01Z", "", None),
        ("2099-01-01T00:00:00Z", "", None),
        ("1969-12-31T23:59:59Z", "", None),
        ("2026-01-01T00:00:00", "", None),
        ("2026-01-01", "", None),
        ("2026-13-01T00:00:00Z", "", None),
        ("0001-01-01T00:00:00+23:59", "", None),
    ],
)
def test_version_is_a_whole_number_or_a_time(value, unit, expected):
    assert version_of(value, unit, NOW) == expected


def subject(spec, data, kind="order.paid", headers=()):
    return spec.of(EventView(Delivery("POST", "", dict(headers), b""), data, data), kind, NOW)


ORDER = about(entity=("$.kind", "$.id"), version="$.at")


@pytest.mark.parametrize(
    ("data", "entity"),
    [
        ({"kind": "order", "id": 7}, "order:7"),
        ({"kind": "a:b", "id": "c:d"}, "a%3Ab:c:d"),
        ({"kind": "a%3Ab", "id": "c"}, "a%253Ab:c"),
        ({"kind": "order", "id": "x" * (LONGEST_ENTITY - 6)}, "order:" + "x" * (LONGEST_ENTITY - 6)),
        ({"kind": "order", "id": "x" * LONGEST_ENTITY}, None),
        ({"kind": "order", "id": "a\0"}, None),
        ({"kind": "order", "id": "\ud800"}, None),
        ({"kind": "order", "id": ""}, None),
        ({"kind": "order", "id": None}, None),
        ({"kind": "order", "id": True}, None),
        ({"kind": "order", "id": 1.5}, None),
        ({"kind": "order", "id": ["a"]}, None),
        ({"kind": "order"}, None),
    ],
)
def test_entity_is_what_its_parts_say_or_none(data, entity):
    assert subject(ORDER, {**data, "at": 3}) == (entity and Subject(entity, 3))


@pytest.mark.parametrize("data", [None, [], "text", 7])
def test_body_of_another_form_has_no_subject(data):
    assert subject(ORDER, data) is None


def test_each_type_has_its_object():
    spec = about_each({"order.refund.*": "$.refund", "order.*": "$.order", "item": "$.item"}, version="$.rev")
    data = {"order": {"id": 1, "rev": 2}, "refund": {"id": 3, "rev": 4}, "item": {"id": 5, "rev": 6}}

    found = [subject(spec, data, kind) for kind in ("order.paid", "order.refund.made", "item", "items", "x")]

    assert found == [Subject("order:1", 2), Subject("refund:3", 4), Subject("item:5", 6), None, None]


def test_version_may_stand_outside_the_object():
    spec = about_each({"*": "$.order"}, version=field("$.at"), within=(header("x-shop"),))

    found = subject(spec, {"order": {"id": 1}, "at": 9}, headers={"x-shop": "s:1"}.items())

    assert found == Subject("s%3A1:order:1", 9)


@pytest.mark.parametrize("entity", ["$.id", (), ("id",)])
def test_entity_is_a_tuple_of_places(entity):
    with pytest.raises(ValueError, match="place"):
        about(entity=entity, version="$.v")
