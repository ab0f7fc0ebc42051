"""Trackers of Shippo, which have no time of their change."""

import json
from dataclasses import replace

from tests.support.captured import captured_as


def test_tracker_of_the_same_status_and_another_arrival_is_another_event():
    case = captured_as("shippo/signed")
    body = json.loads(case.delivery.body)
    body["data"]["eta"] = "2026-01-20T00:00:00Z"

    [event], [later] = (
        case.events(case.delivery),
        case.events(replace(case.delivery, body=json.dumps(body).encode())),
    )

    assert event.id != later.id
