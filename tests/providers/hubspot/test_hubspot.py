from dataclasses import replace

import pytest

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit.registry import load
from tests.support.senders import reason_of, sent


def test_hubspot_v3_decides_wherever_it_was_sent():
    provider, delivery = sent("hubspot", [], url="https://h/x")
    spoilt = replace(delivery, headers={**delivery.headers, "x-hubspot-signature-v3": "A" * 43 + "="})
    beside = {**spoilt.headers, "x-hubspot-signature": "0" * 64, "x-hubspot-signature-version": "v1"}

    assert reason_of(provider, replace(spoilt, headers=beside)) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize("version", ["v0", "v3", "V1", ""])
def test_hubspot_hash_of_another_version_is_bad_header(version):
    headers = {"x-hubspot-signature": "0" * 64, "x-hubspot-signature-version": version}

    assert reason_of(load("hubspot"), Delivery("POST", "", headers, b"[]")) == Reason.BAD_HEADER


def test_hubspot_workflow_by_get_is_an_event_with_its_query():
    [event] = load("hubspot").events(Delivery("GET", "https://h/x?email=a%40b.c", {}, b""))

    assert (event.type, event.data) == ("workflow", {"email": "a@b.c"})
