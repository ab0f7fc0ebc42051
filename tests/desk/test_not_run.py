"""An event that no handler was run for says why, and what to do, at every face in the same words."""

import html
from datetime import timedelta

import pytest

from hookonce.jobs.handlers import Handler, Registry
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.store import store
from tests.desk.conftest import WAYS
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state


@pytest.fixture(scope="module", autouse=True)
def handlers(inbox):
    registry = Registry()
    for name, source, pattern in [
        ("shop.credit", "stripe", "invoice.*"),
        ("shop.ship", "shopify", "orders/paid"),
    ]:
        options = {"attempts": 3, "backoff": (timedelta(0), timedelta(0)), "timeout": timedelta(seconds=40)}
        registry.add(Handler(name, source, pattern, print, **options))
    register_handlers(inbox.connection, registry.rows(), registry.declarations())


UNWANTED = 'a test event, and source stripe has accept = "live"'
UNREADABLE = "MalformedBody: there is no id"
REASONS = {
    "no handler takes its type": (
        ("stripe", "charge.refunded", "ignored"),
        (
            "no handler takes 'charge.refunded'; handlers of stripe: shop.credit ('invoice.*'); add "
            '`@on("stripe", "charge.refunded")`, then `hookonce replay {event}`'
        ),
    ),
    "its source has no handler": (
        ("github", "push", "ignored"),
        (
            "no handler takes 'push'; handlers of github: none; "
            'add `@on("github", "push")`, then `hookonce replay {event}`'
        ),
    ),
    "a handler was added since": (
        ("stripe", "invoice.paid", "ignored"),
        "no handler took 'invoice.paid' when it came; shop.credit does now: `hookonce replay {event}`",
    ),
    "it is held": (("stripe", "invoice.paid", "held"), "it is held; `hookonce replay {event}` releases it"),
    "no worker took it": (
        ("stripe", "invoice.paid", None),
        "no worker has taken it yet; `hookonce doctor` says whether one runs",
    ),
    "its source does not accept it": (
        ("stripe", "invoice.paid", UNWANTED),
        f"{UNWANTED}; `hookonce replay {{event}}` tries it all the same",
    ),
    "its provider could not read it": (
        ("stripe", "unreadable", UNREADABLE),
        f"{UNREADABLE}; `hookonce replay {{event}}` tries it all the same",
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_event_that_was_not_run_says_why_and_what_to_do(everywhere, reason):
    (source, kind, status), said = REASONS[reason]
    ended = {"unwanted": UNWANTED} if status == UNWANTED else {}
    ended |= {"unreadable": UNREADABLE} if status == UNREADABLE else {}
    event = new_event(reason, source=source, provider=source, type=kind, **ended)
    number = store(everywhere.connection, [event])[event.key].id
    if status and not ended:
        put_into_state(everywhere.connection, number, status)

    told = {
        way: everywhere.ask(way, "get_event", {"event": str(number)}, ["events", "show", number, "--json"])
        for way in WAYS
    }
    page = html.unescape(everywhere.browser.get(f"/admin/events/{number}").text)
    shown = " ".join(everywhere.run("events", "show", number).out.split())

    said = said.format(event=number)
    assert {way: each["why_not_run"] for way, each in told.items() if way != "tool"} == dict.fromkeys(
        {*WAYS} - {"tool"}, said
    )
    assert (said in page, said in shown) == (True, True)


def test_event_that_was_run_says_nothing_of_that(everywhere):
    event = new_event("done", type="invoice.paid")
    number = store(everywhere.connection, [event])[event.key].id
    put_into_state(everywhere.connection, number, runs=[("shop.credit", "done", 1)])

    found = everywhere.ask("api", "get_event", {"event": str(number)}, [])

    assert found["why_not_run"] is None
