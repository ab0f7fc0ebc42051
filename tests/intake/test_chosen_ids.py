"""Ids and accounts where the operator wants them: two different events never look the same, a retry always does."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookonce.providers import Delivery, Event
from hookonce.providers.kit.registry import chosen_ids, load
from hookonce.providers.kit.registry.chosen_ids import ChosenIds, is_own, with_chosen_ids

ORDER = 'id = ["$.order.id", "$.status"]'
SCOPE = 'account = "$.shop"\nscope_ids_by_account = true'
PARTS = st.one_of(st.text(max_size=4), st.integers(), st.booleans())
NASTY = [
    ("a:b", "c"), ("a", "b:c"), ('a","b', "c"), ("a", 'b","c'), ("1", "x"), (1, "x"), (True, "x"), ("true", "x"),
    ('["a"', "x"), ("[", "]"), ("[]", "x"), ("@", "x"), ("a\0", "b"), ("a", "\0b"), ("\ud800", "x"), ("\ud801", "x"),
]  # fmt: skip


def order(number, status, **more):
    return {"id": "evt", "type": "order", "order": {"id": number}, "status": status} | more


def ids_of(event, chosen, headers=()):
    provider = load("stripe")
    taking = chosen_ids.replace(provider, events=lambda _: [event])
    [made] = with_chosen_ids(taking, chosen).events(Delivery("POST", "", dict(headers), b""))
    return made


def composite(values, own="evt"):
    event = Event(own, "t", {str(n): value for n, value in enumerate(values)})
    return ids_of(event, ChosenIds(tuple(f"$.{n}" for n in range(len(values))))).id


def test_events_are_told_apart_by_the_places_and_nothing_else(open_sources):
    shop = open_sources(ORDER)

    answers = [
        shop.status(order(7, "paid")),
        shop.status(order(7, "paid", id="another", note="sent again")),
        shop.status(order(7, "shipped")),
        shop.status(order("7", "paid")),
    ]

    assert answers == ["accepted", "duplicate", "accepted", "accepted"]
    assert shop.ids == ['[7,"paid"]', '[7,"shipped"]', '["7","paid"]']


def test_equal_tuples_alone_look_the_same():
    made = [composite(each) for each in NASTY]

    assert len(set(made)) == len(NASTY)
    assert made == [composite(each) for each in NASTY]


@given(st.lists(PARTS, min_size=1, max_size=3), st.lists(PARTS, min_size=1, max_size=3))
def test_two_tuples_look_the_same_only_if_they_are(one, other):
    if "" in one or "" in other:
        return  # nothing is no value
    is_same = [(type(each), each) for each in one] == [(type(each), each) for each in other]

    assert (composite(one) == composite(other)) is is_same


@given(st.text(min_size=1, max_size=6), st.lists(PARTS.filter(bool), min_size=1, max_size=2))
def test_senders_id_never_looks_like_a_tuple(own, values):
    kept = ids_of(Event(own, "t", {}), ChosenIds(("$.0", "$.1")))

    assert kept.id != composite(values)
    assert is_own(kept, ChosenIds(("$.0", "$.1")))


@pytest.mark.parametrize("value", [None, "", 1.5, [], {}])
def test_event_that_lacks_a_place_keeps_its_senders_id(open_sources, value):
    shop = open_sources(ORDER)

    answers = [shop.status(order(value, "paid")), shop.status(order(value, "paid", id="evt_2"))]

    assert answers == ["accepted", "accepted"]
    assert shop.ids == ["evt", "evt_2"]


def test_forged_delivery_has_no_id_at_all(open_sources):
    shop = open_sources(ORDER)

    refused = shop.send(order(7, "paid"), X_Sig="0" * 64)

    assert (refused.status_code, shop.ids) == (401, [])


def test_id_of_an_unsigned_header_is_none_that_can_be_trusted(open_sources):
    assert open_sources(ORDER).source.provider.id_is_signed
    assert not open_sources('id = ["$.order.id", "header:X-Kind"]').source.provider.id_is_signed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ORDER),
        ("", SCOPE),
        ("", f"{ORDER}\n{SCOPE}"),
        (ORDER, f"{ORDER}\n{SCOPE}"),
        (SCOPE, f"{ORDER}\n{SCOPE}"),
    ],
)
@pytest.mark.parametrize("own", ["evt", "[evt"])
def test_retry_of_what_came_before_the_choice_is_no_new_event(open_sources, before, after, own):
    before, after = open_sources(before), open_sources(after)

    assert before.status(order(7, "paid", id=own)) == "accepted"
    assert after.status(order(7, "paid", id=own)) == "duplicate"
    assert after.status(order(7, "paid", id="evt_2")) == "accepted"


def test_id_of_before_the_choice_counts_no_longer_than_the_sender_tries(open_sources):
    before, after = open_sources(), open_sources(ORDER)
    before.status(order(7, "paid"))
    before.rows("UPDATE hookonce.events SET received_at = received_at - interval '73 h' RETURNING id")

    assert after.status(order(7, "paid")) == "accepted"


def test_same_id_of_two_accounts_is_two_events(open_sources):
    shop = open_sources(SCOPE)

    answers = [shop.status(order(1, "x", shop=name)) for name in ("a", "b", "a")]

    assert answers == ["accepted", "accepted", "duplicate"]
    assert shop.ids == ['@["a","evt"]', '@["b","evt"]']
    assert shop.rows("SELECT account FROM hookonce.event_states ORDER BY id") == [("a",), ("b",)]


def test_scope_and_places_go_together(open_sources):
    shop = open_sources(f"{ORDER}\nscope_ids_by_account = true")

    answers = [shop.status(order(7, "paid"), X_Account=name) for name in ("a", "b", "a")]

    assert answers == ["accepted", "accepted", "duplicate"]
    assert shop.ids == ['@["a","[7,\\"paid\\"]"]', '@["b","[7,\\"paid\\"]"]']


def test_account_and_id_are_not_mixed_up():
    scoped = ChosenIds(is_scoped=True)
    made = [
        ids_of(Event(own, "t", {}, account), scoped).id
        for account, own in [("a", 'b","c'), ('a","b', "c"), (None, "c"), ("null", "c"), ("", "c")]
    ]

    assert len(set(made)) == len(made)


def test_element_that_can_not_be_read_keeps_its_digest():
    event = Event(sha256(b"{}").hexdigest(), "unreadable", {"order": {"id": 1}}, unreadable="bad_body: none")

    assert ids_of(event, ChosenIds(("$.order.id", "$.status"))) is event


@pytest.mark.parametrize("own", ['@["a","[7]"]', "[7]", "@", '@["a"]'])
def test_type_that_a_sender_lets_anybody_choose_does_not_keep_an_id_from_being_marked(own):
    chosen = ChosenIds(("$.order.id",), is_scoped=True)
    event = Event(own, "unreadable", {}, "mallory", raw=b"{}")

    made = ids_of(event, chosen)

    assert made.id.startswith('@["mallory",')
    assert is_own(made, chosen)


def test_elements_of_a_batch_have_ids_of_their_own():
    provider = with_chosen_ids(load("twilio_sendgrid_events"), ChosenIds(("$.email", "$.event")))
    body = b'[{"email":"a","event":"open","sg_event_id":"1"},{"email":"b","event":"open","sg_event_id":"1"}]'

    assert [event.id for event in provider.events(Delivery("POST", "", {}, body))] == [
        '["a","open"]',
        '["b","open"]',
    ]
