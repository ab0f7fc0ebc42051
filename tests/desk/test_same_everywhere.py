"""The same names mean the same event, and the same mistakes are told in the same words, whichever way one asks."""

import pytest

from hookonce.receiver.ledger.store import store
from tests.desk.conftest import WAYS
from tests.support.new_event import new_event

KEYS = [
    ("stripe", "evt_1"),
    ("stripe", "evt_22"),
    ("stripe", "evt_2"),
    ("shopify", "orders/7#a?b"),
    ("github", "evt_1"),
    ("github", "12"),
    ("github", "größe 5"),
]


@pytest.fixture(scope="module")
def named(inbox):
    """The ledger ids of events, by source and the sender's id."""
    return {
        key: store(inbox.connection, [new_event(key[1], source=key[0], provider=key[0])])[key].id
        for key in KEYS
    }


NAMES = [
    ("{}", ("stripe", "evt_1")),
    ("stripe:evt_1", ("stripe", "evt_1")),
    ("github:evt_1", ("github", "evt_1")),
    ("evt_2", ("stripe", "evt_2")),
    ("stripe:evt_22", ("stripe", "evt_22")),
    ("orders/7", ("shopify", "orders/7#a?b")),
    ("shopify:orders/7#a?b", ("shopify", "orders/7#a?b")),
    ("github:12", ("github", "12")),
    ("grö", ("github", "größe 5")),
]


@pytest.mark.parametrize(("name", "key"), NAMES)
def test_event_is_found_by_the_same_name(everywhere, named, name, key):
    number = named[key]
    name = name.format(number)

    found = {
        way: everywhere.ask(way, "get_event", {"event": name}, ["events", "show", name, "--json"])
        for way in WAYS
    }

    assert {way: str(each["id"]) for way, each in found.items()} == dict.fromkeys(WAYS, str(number))


def _unknown(name):
    expected = (
        "expected a ledger id, source:event_id, or how a sender's id begins, see `hookonce events list`"
    )
    return f"no event is {name!r}; {expected}"


MISTAKES = [
    ("get_event", {"event": "0"}, ["events", "show", "0"], _unknown("0")),
    ("get_event", {"event": "9" * 30}, ["events", "show", "9" * 30], _unknown("9" * 30)),
    (
        "get_event",
        {"event": "stirpe:evt_1"},
        ["events", "show", "stirpe:evt_1"],
        "no event is 'stirpe:evt_1'; did you mean 'stripe:evt_1'?",
    ),
    ("get_event", {"event": "evt_1"}, ["events", "show", "evt_1"], "several events begin with 'evt_1'"),
    ("get_event_body", {"event": "999"}, ["events", "show", "999", "--raw"], _unknown("999")),
    ("diff_event", {"event": "nope"}, ["events", "diff", "nope"], _unknown("nope")),
    ("list_steps", {"event": "nope"}, ["steps", "show", "nope"], _unknown("nope")),
]


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(("action", "arguments", "command", "said"), MISTAKES)
def test_mistake_is_told_in_the_same_words(everywhere, action, arguments, command, said):
    told = {way: everywhere.ask(way, action, arguments, command) for way in WAYS}

    assert len({str(each) for each in told.values()}) == 1, told
    assert told["api"].startswith(said)
