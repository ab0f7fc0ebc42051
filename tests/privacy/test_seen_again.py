"""What a token sees of deliveries is posted to the public door again, and no sender's source takes it."""

import contextlib
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.database import connections
from tests.support.captured import captured
from tests.support.in_process import Receiver


def cases():
    """A delivery of each sender whose ids or bodies are unsigned, and of each that proves itself in body or query."""
    found = {}
    for case in captured():
        provider = case.provider
        is_replayable = not provider.id_is_signed or provider.body_is_unsigned
        is_elsewhere = not all(place.startswith("header:") for place in provider.proof)
        if case.is_genuine and not provider.unauthenticated and (is_replayable or is_elsewhere):
            found[case.name] = case
    return found.values()


@pytest.fixture
def receiver(database_url, redis_url):
    with contextlib.closing(Receiver(database_url, redis_url)) as running:
        yield running


def test_delivery_that_is_seen_can_not_be_sent_again(receiver):
    with connections.connect(receiver.database_url) as connection:
        token = api_tokens.create(connection, "seeing", [Scope.READ, Scope.BODIES], None, "a test")
    client, bearer = receiver.app.test_client(), {"Authorization": f"Bearer {token}"}
    taken, unlike = 0, {}

    for n, case in enumerate(cases()):
        name = f"source-{n}"
        receiver.add(name, case.provider, case.secret)
        receiver.now = case.now
        if receiver.send(name, case.delivery).status_code >= 300:
            continue  # its key would be fetched, or its URL is signed
        taken += 1
        for event in client.get(f"/api/v1/events?source={name}", headers=bearer).json["data"]:
            shown = client.get(f"/api/v1/events/{event['id']}", headers=bearer).json
            body = client.get(f"/api/v1/events/{event['id']}/body", headers=bearer).data
            url = f"/hooks/{name}?{urlsplit(shown['url']).query}"
            again = replace(case.delivery, url=url, headers=shown["headers"], body=body, path_secret="")
            answer = receiver.send(name, again)
            if answer.status_code < 400:
                unlike[case.name] = answer.get_data(as_text=True)

    assert unlike == {}
    assert taken > 100
