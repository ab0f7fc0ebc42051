"""Senders judged by what is known of all that they send: `tests/catalogues/`, from `tests.support.catalogues.make`."""

import json
from dataclasses import replace

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.samples import files
from tests.support.catalogues.shapes import CATALOGUES, filled, lacks, read
from tests.support.for_each import for_each
from tests.support.senders import NOW

SENDERS = sorted(path.stem for path in CATALOGUES.glob("*.json"))
SECRET = "a secret of the catalogues"


def kinds():
    return [(sender, kind) for sender in SENDERS for kind in read(sender).kinds]


def sent(sender, kind, seed, event_id):
    """A delivery of a kind, its body made of the vendor's shape, with the headers that carry id and type."""
    body = filled(read(sender).kinds[kind], seed)
    told = kind
    if sender == "github":
        told, _, action = kind.partition(".")
        body |= {"action": action} if action else {}
    raw = json.dumps(body).encode()
    delivery = load(sender).delivery(raw, SECRET, NOW, event_id=event_id, type=told)
    if sender == "shopify":
        delivery = replace(delivery, headers={"x-shopify-shop-domain": "a.myshopify.com", **delivery.headers})
    return delivery


def events(sender, kind, seed, event_id="e-1"):
    delivery = sent(sender, kind, seed, event_id)
    provider = load(sender)
    provider.verify(delivery, [SECRET], NOW)
    return provider.events(delivery)


def test_catalogues_name_package_version_and_licence():
    sources = [read(sender).source for sender in SENDERS]

    assert [set(source) for source in sources] == [{"package", "version", "licence"}] * len(SENDERS)
    assert SENDERS == ["github", "shopify"]


@for_each(kinds, parts=2)
def test_kind_is_one_event_of_the_type_that_one_subscribes_to(sender, kind):
    [event] = events(sender, kind, "a")

    assert event.type == (
        kind.partition(".")[0] if sender == "github" else kind
    )  # GitHub's is without the action


@for_each(kinds, parts=2)
def test_retry_is_the_same_event_and_another_is_another(sender, kind):
    first, again, changed = (
        events(sender, kind, seed, event_id) for seed, event_id in (("a", "e-1"), ("a", "e-1"), ("b", "e-2"))
    )

    assert first[0].id == again[0].id != changed[0].id


@for_each(SENDERS)
def test_ids_are_distinct_across_kinds(sender):
    found = [events(sender, kind, "a", f"e-{number}")[0].id for number, kind in enumerate(read(sender).kinds)]

    assert len(set(found)) == len(found) > 100


def owners(shape):
    """Whether the vendor's example says whose it is."""
    return any(isinstance(shape.get(name), dict) for name in ("repository", "organization", "installation"))


@for_each(kinds, parts=2)
def test_account_is_found_where_the_vendor_names_it(sender, kind):
    shape = read(sender).kinds[kind]
    is_named = sender == "shopify" or owners(shape)

    assert not is_named or events(sender, kind, "a")[0].account


@for_each(SENDERS)
def test_samples_have_every_key_of_the_vendor_with_its_type(sender):
    shapes = read(sender).kinds
    known = [kind for kind in files.types(sender) if kind in shapes]
    found = {kind: list(lacks(shapes[kind], files.sample(sender, kind).body)) for kind in known}

    assert {kind: lacking for kind, lacking in found.items() if lacking} == {}
    assert len(known) >= len(files.types(sender)) - 1


@pytest.mark.parametrize(
    ("shape", "value", "lacking"),
    [
        ({"a": "string"}, {}, ["$.a is missing"]),
        ({"a": "string"}, {"a": 1}, ["$.a is no string"]),
        ({"a": "string"}, {"a": None}, ["$.a is no string"]),
        ({"a": "null|string"}, {"a": None}, []),
        ({"a": "null"}, {"a": {"b": 1}}, []),
        ({"a": [{"b": "number"}]}, {"a": [{"b": 1}, {}]}, ["$.a[1].b is missing"]),
        ({"a": [{"b": "number"}]}, {"a": []}, []),
        ({"a": {"b": "number"}}, {"a": []}, ["$.a is no object"]),
    ],
)
def test_shape_says_what_a_body_lacks(shape, value, lacking):
    assert list(lacks(shape, value)) == lacking
