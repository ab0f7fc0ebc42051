"""What `@on` takes of the order of events, and what it refuses, at the start of a worker."""

import re

import pytest

from hookonce import on, on_batch
from hookonce.jobs import handlers
from hookonce.jobs.handlers import HandlerError, Registry

PATHS = {"entity": ("$.order.id",), "version": "$.updated_at"}


def take(event, tx):
    """Take an event."""


def take_long(event):
    """Take an event, without a transaction."""


def take_many(events, tx):
    """Take a batch."""


@pytest.fixture
def registry(monkeypatch):
    made = Registry()
    monkeypatch.setattr(handlers, "registry", made)
    return made


@pytest.mark.parametrize("stale", ["skip", "flag"])
@pytest.mark.parametrize(
    "paths", [{}, PATHS, {**PATHS, "entity": ("$.shop", "$['order id']", "$.lines[0].id")}]
)
def test_order_is_declared_and_told_to_others(registry, stale, paths):
    on("stripe", name="orders", stale=stale, **paths)(take)

    (handler,) = registry
    assert (handler.stale, handler.entity, handler.version) == (
        stale,
        paths.get("entity"),
        paths.get("version"),
    )
    assert f'"stale": "{stale}"' in handler.declaration


def test_same_order_may_be_declared_for_several_patterns(registry):
    on("stripe", "a", name="orders", stale="skip", **PATHS)(
        on("stripe", "b", name="orders", stale="skip", **PATHS)(take)
    )

    assert len(registry) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stale": "yes"}, "stale='yes' is wrong; expected 'skip' or 'flag'"),
        ({"stale": True}, "stale=True is wrong"),
        ({"stale": ["skip"]}, "stale=['skip'] is wrong"),
        ({"stale": ""}, "stale='' is wrong"),
        ({"name": None}, 'stale= needs name=, as in name="orders"'),
        ({"entity": ("$.id",)}, "version= is missing"),
        ({"version": "$.v"}, "entity= is missing"),
        ({**PATHS, "stale": None}, "expected stale='skip' or stale='flag' with them"),
        ({**PATHS, "entity": "$.id"}, 'expected one like entity=("$.order.id",)'),
        ({**PATHS, "entity": ()}, 'expected one like entity=("$.order.id",)'),
        ({**PATHS, "entity": ("id",)}, "'id' is not a path"),
        ({**PATHS, "entity": (7,)}, "'7' is not a path"),
        ({**PATHS, "version": "updated_at"}, "'updated_at' is not a path"),
        ({**PATHS, "version": 7}, "'7' is not a path"),
        ({**PATHS, "version": "$.all[*].v"}, "is not the path of one value"),
        ({**PATHS, "version": "$"}, "is not the path of one value"),
    ],
)
def test_order_that_can_t_be_is_refused(registry, options, said):
    declared = {"name": "orders", "stale": "skip"} | options

    with pytest.raises(HandlerError, match=re.escape(said)):
        on("stripe", **declared)(take)

    assert len(registry) == 0


@pytest.mark.usefixtures("registry")
def test_order_needs_a_transaction():
    with pytest.raises(HandlerError, match="stale= needs a transaction, and tx='none' gives none"):
        on("stripe", name="orders", stale="skip", tx="none")(take_long)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("option", [{"stale": "skip"}, {"entity": ("$.id",)}, {"version": "$.v"}])
def test_order_is_not_for_batches(option):
    with pytest.raises(HandlerError, match="its events have many entities; take them one by one, with @on"):
        on_batch("stripe", name="orders", **option)(take_many)


@pytest.mark.usefixtures("registry")
def test_two_patterns_of_one_handler_have_one_order():
    on("stripe", "a", name="orders", stale="skip")(take)

    with pytest.raises(HandlerError, match=r"has different attempts, .* stale or limits in two places"):
        on("stripe", "b", name="orders", stale="flag")(take)
