from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.crypto.public_keys import new_key
from tests.support.declared import declared
from tests.support.for_each import for_each

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
URL = "https://in.example/hooks/s"


@cache
def secret_of(algorithm, number=1):
    return new_key(algorithm) if algorithm else f"the-kit-s-own-secret-{number}"


def secrets(each):
    return [secret_of(each.provider.key_algorithm, number) for number in (1, 2)]


def sent(each):
    told = {"event_id": each.said["event_id"], "type": each.said["event_type"]}
    return each.provider.delivery(each.said["body"].encode(), secrets(each)[0], NOW, url=URL, **told)


@for_each(declared)
def test_declaration_signs_and_is_read(each):
    delivery = sent(each)

    each.provider.verify(delivery, secrets(each)[:1], NOW)
    [event] = each.provider.events(delivery)
    assert event.type == each.said["event_type"]
    if each.said["event_id"] == "fingerprint":
        assert len(event.id) == 64
    else:
        assert event.id == each.said["event_id"]


@for_each(declared)
def test_declaration_refuses_what_was_changed_or_is_of_another(each):
    delivery = sent(each)
    own, other = secrets(each)
    refused = [(delivery, other)]
    if not each.provider.body_is_unsigned:
        refused.append((replace(delivery, body=delivery.body + b" "), own))

    for changed, secret in refused:
        with pytest.raises(Rejected):
            each.provider.verify(changed, [secret], NOW)


@for_each(each for each in declared() if "vector" in each.said)
def test_declaration_takes_what_its_sender_has_published(each):
    said = each.said["vector"]
    delivery = Delivery("POST", URL, said["headers"], said["body"].encode())

    each.provider.verify(delivery, [said["secret"]], NOW)

    with pytest.raises(Rejected):
        each.provider.verify(delivery, [f"{said['secret']}."], NOW)


@for_each(declared)
def test_declaration_has_no_module_and_names_its_page(each):
    assert each.said["page"].startswith("https://")
    assert each.said.keys() <= {"page", "from", "signs", "event_id", "event_type", "body", "vector", "source"}
    assert each.lines[-1].startswith(each.said["source"]["provider"])
