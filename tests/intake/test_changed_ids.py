"""Ids that this release makes otherwise: what the last one stored is known when its sender tries again."""

import json
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from hookonce.providers.kit.registry import load
from tests.support.captured import captured_of

PUBLIC = "https://hooks.example.com/hooks"
CALL = {"AccountSid": "AC1", "CallSid": "CA1"}
CHANGED = {
    "adyen": {
        "type": "balancePlatform.transfer.updated",
        "timestamp": "2026-01-01T00:00:00Z",
        "data": {"id": "T", "sequenceNumber": 2},
    },
    "mailersend": {"type": "activity.clicked_unique", "data": {"id": "a"}},
    "monday": {"event": {"triggerUuid": "u", "subscriptionId": 1, "type": "x", "isRetry": False}},
    "netlify": {"id": "d", "state": "ready", "published_at": "2026-01-01T00:00:00Z"},
    "twilio": CALL | {"ConferenceSid": "CF1", "StatusCallbackEvent": "participant-join"},
    "cloudevents": {"source": "urn:a", "id": "b:c", "type": "t"},
    "bot_framework": {
        "type": "messageUpdate",
        "channelId": "c",
        "conversation": {"id": "19:a"},
        "id": "1",
        "serviceUrl": "https://smba.trafficmanager.net/teams/",
    },
    "freshdesk": {"freshdesk_webhook": {"ticket_id": "1"}},
}
"""A body of each sender, whose event has another id now."""
BEFORE = {
    "monday": {"volatile": (), "former_volatile": None},
    "freshdesk": {"id_period": timedelta(hours=1), "former_id_period": None},
}


def as_before(provider, **changes):
    """The provider as it was in the last release, by the first of its former ids."""

    def events(delivery):
        return [
            replace(event, id=(*event.former_ids, event.id)[0], former_ids=())
            for event in provider.events(delivery)
        ]

    return replace(provider, events=events, **changes)


def own_key(signing):
    """The secret that pins the public key, of a sender whose keys would be fetched."""
    name, _, private = signing.partition(":")
    key = load_pem_private_key(private.encode(), None).public_key()
    return f"{name}:{key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()}"


@pytest.fixture
def upgraded(receiver):
    """Sends a body of a sender before and after the upgrade; returns what became of it each time."""

    def send(name, body, *, later=timedelta(0), again=None):
        case = next(case for case in captured_of(name) if case.is_genuine and case.signing)
        secret = own_key(case.signing) if case.keys else case.secret
        known = sha256(json.dumps([body, again]).encode()).hexdigest()[:8]
        provider, source = load(name), f"{name.replace('_', '-')}-{known}"
        receiver.now = case.now

        def sent(said):
            raw = urlencode(said).encode() if name == "twilio" else json.dumps(said).encode()
            return provider.delivery(raw, case.signing, case.now, url=f"{PUBLIC}/{source}")

        receiver.add(source, as_before(provider, **BEFORE.get(name, {})), secret)
        first = receiver.send(source, sent(body))
        receiver.add(source, provider, secret)
        receiver.now += later
        second = receiver.send(source, sent(body if again is None else again))
        assert (first.status_code, second.status_code) == (200, 200)
        [found] = receiver.query(
            "SELECT count(*), coalesce(sum((SELECT count(*) FROM hookonce.conflicts c WHERE c.event = e.id)), 0) "
            "FROM hookonce.event_states e WHERE source = %s",
            source,
        )
        return found

    return send


@pytest.mark.parametrize("name", sorted(CHANGED))
def test_retry_across_the_upgrade_is_no_second_event(upgraded, name):
    assert upgraded(name, CHANGED[name]) == (1, 0)


@pytest.mark.parametrize("name", ["adyen", "twilio", "bot_framework"])
def test_other_event_that_had_the_id_before_is_a_second_event(upgraded, name):
    assert upgraded(name, CHANGED[name], again=CHANGED[name] | {"more": "said"}) == (2, 0)


@pytest.mark.parametrize(
    ("later", "events"), [(timedelta(minutes=31), 1), (timedelta(minutes=45), 1), (timedelta(minutes=75), 2)]
)
def test_freshdesk_tries_again_across_the_upgrade_by_the_period_of_before(upgraded, later, events):
    body = {"freshdesk_webhook": {"ticket_id": f"later {later}"}}

    assert upgraded("freshdesk", body, later=later) == (events, 0)


def test_monday_event_without_a_subscription_that_was_stored_before_does_not_conflict(upgraded):
    body = {"event": {"triggerUuid": "u2", "type": "x", "isRetry": False}}

    assert upgraded("monday", body) == (1, 0)
