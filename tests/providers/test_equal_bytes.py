"""Events that differ in nothing but what tells them apart, and retries that differ in what a retry changes."""

import json
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from hookonce.providers.kit import Attempts, body_digest, field, header, join, one_event, told_apart_by
from hookonce.providers.kit.conformance.equal_bytes import check_equal_bytes
from hookonce.providers.kit.registry import load, names
from tests.support.captured import captured_of
from tests.support.for_each import for_each
from tests.support.senders import NOW, ids_of
from tests.support.senders_page import provider_of

ITEM = {"webhook_type": "TRANSACTIONS", "webhook_code": "SYNC_UPDATES_AVAILABLE", "item_id": "i1"}
UNPUBLISHED = {"triggerType": "collection_item_unpublished", "payload": {"id": "i", "siteId": "s"}}


@for_each(names)
def test_sender_says_what_tells_its_events_apart(name):
    assert provider_of(name).identity, "write Sender(identity=told_apart_by(…), …)"


def test_sender_whose_time_of_receipt_counts_says_so():
    periods = {name for name in names() if provider_of(name).id_period}

    assert periods == {name for name in names() if "receipt" in provider_of(name).identity.places}


def signed_at(name, body, seconds):
    """The one event of `body`, signed so many seconds after a moment that nothing depends on."""
    [case, *_] = [case for case in captured_of(name) if case.signing and case.is_genuine]
    sent = case.provider.delivery(json.dumps(body).encode(), case.signing, NOW + timedelta(seconds=seconds))
    [event] = case.provider.events(sent)
    return event


@pytest.mark.parametrize(
    ("name", "body", "pause", "later"),
    [
        ("plaid", ITEM, 40, 60),
        ("webflow", UNPUBLISHED, 630, 800),
        ("hygraph", {"operation": "unpublish", "data": {"id": "c1"}}, 50, 70),
        ("buildkite", {"event": "agent.connected", "agent": {"id": "a1"}}, 50, 70),
        ("wix", {"eventType": "x", "instanceId": "i", "data": {"productId": "p1"}}, 60, 110),
    ],
)
def test_equal_bytes_signed_later_are_another_event_and_soon_a_retry(name, body, pause, later):
    first, retry, other = (signed_at(name, body, seconds) for seconds in (0, pause, later))

    assert first.id in {retry.id, *retry.retry_ids}
    assert first.id not in {other.id, *other.retry_ids}


def test_two_clicks_of_one_batch_are_two_events():
    urls = ("https://a", "https://b")
    listed = [{"event": "click", "_id": "m", "ts": 1767225600, "url": url} for url in urls]
    body = urlencode({"mandrill_events": json.dumps(listed)}).encode()

    assert len(set(ids_of("mandrill", body))) == 2


@pytest.mark.parametrize(
    ("name", "body", "is_undated"),
    [
        ("clickup", {"event": "spaceUpdated", "space_id": "1", "webhook_id": "w"}, True),
        ("clickup", {"event": "taskUpdated", "webhook_id": "w", "history_items": [{"id": "1"}]}, False),
        ("microsoft_graph", {"value": [{"changeType": "updated", "resource": "me/drive/root"}]}, True),
        ("microsoft_graph", {"value": [{"changeType": "updated", "id": "1"}]}, False),
        ("hubspot", {"example": 1}, True),
        ("webex", {"resource": "memberships", "event": "created", "data": {"id": "m"}}, True),
        ("webex", {"resource": "messages", "event": "created", "data": {"id": "m"}}, False),
        ("stripe", {"id": "e", "type": "t"}, None),
        ("plaid", ITEM, None),
    ],
)
def test_time_of_receipt_counts_where_nothing_else_tells(name, body, is_undated):
    provider = load(name)

    [event] = provider.events(_delivered(body))

    assert event.is_undated is is_undated


def _delivered(body):
    return replace(captured_of("stripe")[0].delivery, headers={}, body=json.dumps(body).encode(), readings={})


@pytest.mark.parametrize("reminders", [False, True])
def test_grafana_takes_what_is_repeated_for_an_event_if_told_to(reminders):
    provider = load("grafana", options={"reminders": reminders})
    alert = {"status": "firing", "fingerprint": "f", "startsAt": "2026-01-01T00:00:00Z"}

    [event] = provider.events(_delivered({"groupKey": "g", "status": "firing", "alerts": [alert]}))

    assert bool(event.is_undated) is reminders
    assert (provider.id_period is not None) is reminders


def case_of(**changes):
    """A genuine delivery of Stripe, whose provider is changed."""
    [case, *_] = [case for case in captured_of("stripe") if case.is_genuine]
    return replace(case, provider=replace(case.provider, **changes))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"events": one_event(id=field("$.type"), type=field("$.type"))}, "has the same id"),
        ({"identity": told_apart_by("$.id + $.type")}, "another event by its \\$.type has the same id"),
        ({"identity": told_apart_by("$.nowhere", "header x-none")}, "none of what tells events apart"),
        ({"identity": None}, "nothing says what tells two events apart"),
        ({"identity": told_apart_by("receipt")}, "no part of their ids"),
        (
            {"identity": told_apart_by("$.id", new_on_retry=("$.id",))},
            "a retry with another \\$.id is another event",
        ),
        (
            {"identity": told_apart_by("$.id", new_on_retry=("$.pending_webhooks",)), "volatile": ()},
            "declare it volatile",
        ),
        (
            {"events": one_event(id=join(field("$.id"), header("stripe-signature")), type=field("$.type"))},
            "signed again a second later is another event",
        ),
    ],
)
def test_contract_catches_an_identity_that(changes, complaint):
    check_equal_bytes(case_of())

    with pytest.raises(AssertionError, match=complaint):
        check_equal_bytes(case_of(**changes))


@pytest.mark.parametrize(
    ("tells", "said", "complaint"),
    [
        ((), {}, "nothing tells events apart"),
        (("id",), {}, "is not a place"),
        (("body",), {}, "because="),
        (("signed time",), {}, "known_from="),
        (("$.id",), {"new_on_retry": ("signed time",)}, "known_from="),
    ],
)
def test_identity_that_can_not_be_meant_is_refused(tells, said, complaint):
    with pytest.raises(ValueError, match=complaint):
        told_apart_by(*tells, **said)


def test_attempts_without_a_signed_time_leave_the_id_as_it_is():
    events = one_event(
        id=body_digest(),
        type=field("$.type"),
        attempts=Attempts(header("x-time"), within=timedelta(minutes=1)),
    )

    [event] = events(_delivered({"type": "t"}))

    assert "@" not in event.id
    assert event.retry_ids == ()
