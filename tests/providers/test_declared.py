from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hookonce.providers import Rejected
from tests.support.declared import declared
from tests.support.for_each import for_each

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)
SECRET = "a-secret-of-the-kit-s-own"


def sent(each):
    return each.provider.delivery(each.said["body"].encode(), SECRET, NOW, url="https://in.example/hooks/s")


@for_each(declared)
def test_declaration_signs_and_is_read(each):
    delivery = sent(each)

    each.provider.verify(delivery, [SECRET], NOW)
    [event] = each.provider.events(delivery)
    assert event.type == each.said["event_type"]
    if each.said["event_id"] == "fingerprint":
        assert len(event.id) == 64
    else:
        assert event.id == each.said["event_id"]


@for_each(declared)
def test_declaration_refuses_what_was_changed_or_is_of_another(each):
    delivery = sent(each)
    refused = [(delivery, "another-secret-of-somebody-s")]
    if not each.provider.body_is_unsigned:
        refused.append((replace(delivery, body=delivery.body + b" "), SECRET))

    for changed, secret in refused:
        with pytest.raises(Rejected):
            each.provider.verify(changed, [secret], NOW)


@for_each(declared)
def test_declaration_has_no_module_and_names_its_page(each):
    assert each.said["page"].startswith("https://")
    assert each.said.keys() <= {"page", "from", "signs", "event_id", "event_type", "body", "source"}
    assert each.line.startswith(each.said["source"]["provider"])
