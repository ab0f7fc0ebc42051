"""The text of an error is withheld from a token without `bodies`, though it ends like the place of an error."""

from datetime import timedelta

import pytest

from hookonce import GiveUp
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot

PLACE = " (acct_4711.py:1)"


@pytest.mark.parametrize("kind", [ValueError, GiveUp])
def test_error_that_ends_like_a_place_is_withheld_whole_and_cut(here, kind):
    said = long(kind)

    def broken(*_):
        raise kind(said)

    work(here, broken)

    assert "4711" not in shown(here, "read")
    assert "test_withheld_errors.py" in shown(here, "read")
    assert "4711" in shown(here, "read+bodies")


def test_error_without_a_place_is_withheld_though_it_ends_like_one(here):
    error = ValueError("no account" + PLACE)
    functions = {}
    exec(compile("def broken(*_): raise error", "<string>", "exec"), {"error": error}, functions)  # noqa: S102

    work(here, functions["broken"])

    assert "4711" not in shown(here, "read")
    assert "4711" in shown(here, "read+bodies")


def long(kind):
    """Return a text of an error that ends like a place, as its first 500 characters do, which lists show."""
    return PLACE.rjust(500 - len(f"{kind.__name__}: "), "x") + " (b(acct_4711.py:1).py:2)" + PLACE


def work(here, function):
    registry = Registry()
    registry.add(
        Handler("broken", "stripe", "*", function, 1, (timedelta(), timedelta()), timedelta(seconds=5))
    )
    here.deliver("evt_1")
    slot = SingleSlot(here.settings, registry)
    slot.run_due()
    slot.close()


def shown(here, scope):
    """The errors of an event as a token reads them, whole and cut."""
    asked = [("get_event", {"event": 1}), ("list_events", {"status": "dead"}), ("list_dead_letters", {})]
    return "".join(str(here.ask(action, **given, scope=scope).json) for action, given in asked)
