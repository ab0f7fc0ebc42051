"""An id that is made otherwise than in an earlier release: delivered before, redelivered after, handled once."""

from dataclasses import replace

import pytest

from tests.support.captured import captured_as

CHANGED = (
    "pagerduty/rotation",
    "recurly/notification-id",
    "zendesk/user",
    "plaid/pinned-jwk",
    "clickup/deleted",
)


def as_before(events):
    """The events as a release made them that knew the first of the former ids only."""

    def former(delivery):
        return [
            replace(
                event,
                id=event.former_ids[-1] if event.former_ids else event.id,
                former_ids=(),
                is_undated=False,
            )
            for event in events(delivery)
        ]

    return former


@pytest.mark.parametrize("name", CHANGED)
def test_event_stored_by_its_former_id_is_handled_once(receiver, name):
    case = captured_as(name)
    receiver.now, source = case.now, name.replace("/", "-")
    before = replace(case.provider, events=as_before(case.provider.events))
    receiver.add(source, before, case.secret)
    first = receiver.send(source, case.delivery).json["status"]

    receiver.add(source, case.provider, case.secret)
    again = [receiver.send(source, case.delivery).json["status"] for _ in range(2)]

    assert (first, again) == ("accepted", ["duplicate", "duplicate"])
    assert receiver.query("SELECT count(*) FROM hookonce.event_states WHERE source = %s", source) == [(1,)]


def test_former_id_counts_no_longer_than_the_sender_tries(receiver):
    case = captured_as("pagerduty/rotation")
    source = "pagerduty-late"
    receiver.add(source, replace(case.provider, events=as_before(case.provider.events)), case.secret)
    receiver.send(source, case.delivery)
    receiver.query("UPDATE hookonce.events SET received_at = received_at - interval '49 h' RETURNING id")

    receiver.add(source, case.provider, case.secret)

    assert receiver.send(source, case.delivery).json["status"] == "accepted"
