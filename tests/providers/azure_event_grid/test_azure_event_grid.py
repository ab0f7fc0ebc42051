import json
from dataclasses import replace

import pytest

from tests.support.captured import captured_as

PROBE = captured_as("azure_event_grid/validation")


@pytest.mark.parametrize(
    "changed",
    [
        {"url": "https://hooks.example/hooks/a?code=another"},
        {"url": "https://hooks.example/hooks/a"},
        {"headers": {"aeg-event-type": "Notification"}},
        {"body": PROBE.delivery.body.replace(b"SubscriptionValidationEvent", b"Another")},
        {"body": json.dumps([{"eventType": "x", "data": {"validationCode": 7}}]).encode()},
        {"body": b"[" * 1000},
        {"body": PROBE.delivery.body + b" " * 70_000},
    ],
)
def test_validation_is_answered_only_to_who_knows_the_secret_and_asks_for_it(changed):
    delivery = replace(PROBE.delivery, **changed)

    assert PROBE.probe(PROBE.delivery, [PROBE.secret]) is not None
    assert PROBE.probe(delivery, [PROBE.secret]) is None
