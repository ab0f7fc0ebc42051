"""Every sample of every sender goes the whole way: signed, verified, and identified by the sender's own module."""

from datetime import UTC, datetime
from functools import cache

import pytest

from hookonce.providers import Rejected
from hookonce.providers.kit import registry
from hookonce.receiver.samples import documents, files
from tests.support.captured import captured_of
from tests.support.for_each import for_each

NOW = datetime(2031, 5, 6, 7, 8, 9, 654321, tzinfo=UTC)
URL = "https://hooks.example.com/hooks/source"
DECLARED = ("hmac", "jwt", "signed", "token")
"""Whose events are what the operator declares; nobody knows them beforehand."""


@cache
def senders():
    return [name for name in registry.names(()) if name not in DECLARED]


def samples():
    return [(name, kind) for name in senders() for kind in files.types(name)]


def accounts(name):
    """Secrets and options of a sender, as in its captured deliveries that can be signed again."""
    return [case for case in captured_of(name) if case.is_genuine and case.signing]


def taken_in(case, kind):
    """One delivery of a new sample, and its events as the receiver would make them."""
    document = documents.fresh(case.provider, kind, NOW)
    delivery = document.delivery(case.signing, NOW, URL)
    case.provider.verify(delivery, [case.secret], NOW, **case.fetched)
    return document, delivery, case.events(delivery)


def read(name, kind):
    """Two deliveries of new samples, of the first account that takes such a type."""
    refusals = []
    for case in accounts(name):
        try:
            first, second = taken_in(case, kind), taken_in(case, kind)
        except (Rejected, ValueError) as error:
            refusals.append(f"{case.name}: {error}")
            continue
        if first[2] and is_of(first[2][0].type, kind):
            return first, second
        refusals.append(f"{case.name}: {[event.type for event in first[2]]}")
    pytest.fail(f"nobody takes it; {'; '.join(refusals)}")


def is_of(told, kind):
    """Whether a sample of this name is of the type told, which the name may extend: `issues.opened` is of `issues`."""
    return kind == told or kind.startswith(f"{told}.")


@for_each(senders)
def test_sender_has_samples(name):
    assert files.types(name)


@for_each(samples, parts=2)
def test_sample_is_verified_and_two_of_them_are_two_events(name, kind):
    first, second = read(name, kind)

    ids = [{event.id for event in events} for _, _, events in (first, second)]
    assert ids[0].isdisjoint(ids[1])
    of_headers_alone = not first[0].body
    assert first[0].provider.id_is_signed or of_headers_alone or first[0].encoded() != second[0].encoded()
    assert "unreadable" not in {event.type for event in first[2]}


@for_each(senders)
def test_usual_sample_is_taken_with_each_set_of_options(name):
    for case in accounts(name):
        _, _, events = taken_in(case, None)

        assert events, case.name
        assert "unreadable" not in {event.type for event in events}


@for_each(DECLARED)
def test_declared_sender_gets_what_its_declaration_says(name):
    for case in accounts(name)[:1]:
        first, second = (taken_in(case, "order.paid")[2] for _ in range(2))

        assert [event.id for event in first] != [event.id for event in second]


def test_sample_of_shopify_has_what_its_own_library_asks_for():
    [case, *_] = accounts("shopify")
    document, delivery, [event] = taken_in(case, "orders/create")
    _, again, _ = taken_in(case, "orders/create")

    asked_for = {"topic", "hmac-sha256", "shop-domain", "api-version", "webhook-id"}
    assert {f"x-shopify-{name}" for name in asked_for} <= delivery.headers.keys()
    assert (event.account, event.occurred_at) == (
        "hookonce-demo.myshopify.com",
        NOW.replace(microsecond=654000),
    )
    assert document.delivery(case.signing, NOW, URL).headers == delivery.headers
    assert again.headers["x-shopify-event-id"] != delivery.headers["x-shopify-event-id"]


@for_each(("gong", "vonage"))
def test_token_is_sent_as_its_sender_sends_it(name):
    for case in accounts(name):
        _, delivery, _ = taken_in(case, files.types(name)[0])

        assert delivery.headers["authorization"].startswith("Bearer ")


def test_header_that_speaks_of_two_places_has_both():
    [case, *_] = accounts("travis_ci")
    _, delivery, _ = taken_in(case, files.types("travis_ci")[0])

    assert delivery.headers["travis-repo-slug"] == "example/parcels"


def test_header_that_speaks_of_the_body_is_read_from_it():
    [case, *_] = accounts("amazon_sns")
    kind = files.types("amazon_sns")[0]
    document, delivery, _ = taken_in(case, kind)

    assert delivery.headers["x-amz-sns-message-type"] == document.body["Type"]
