"""Senders without ids whose equal bodies may be different events: body and time of receipt are in the id."""

import hmac
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers.kit.registry.chosen_ids import ChosenIds, with_chosen_ids
from tests.support.captured import captured_of

BOUNDARY = datetime(2026, 1, 31, 14, 8, tzinfo=UTC)
NAMES = ("dropbox", "acuity", "clickup", "ashby", "greenhouse")
CASES = {"clickup": "clickup/deleted", "ashby": "ashby/ping", "greenhouse": "greenhouse/ping"}


@pytest.fixture
def source(request):
    return re.sub(r"\W+", "-", request.node.name)


def sent(receiver, source, name):
    """Send a genuine delivery, and return how it was answered."""
    [case, *_] = [
        case for case in captured_of(name) if case.is_genuine and case.name == CASES.get(name, case.name)
    ]
    receiver.add(source, case.provider, case.secret)
    return receiver.send(source, case.delivery).json["status"]


def count(receiver, source):
    [(events,)] = receiver.query("SELECT count(*) FROM hookonce.event_states WHERE source = %s", source)
    return events


@pytest.mark.parametrize("name", NAMES)
def test_retry_across_the_end_of_a_period_is_a_duplicate(receiver, source, name):
    receiver.now = BOUNDARY - timedelta(seconds=5)
    first = sent(receiver, source, name)
    stored = count(receiver, source)

    receiver.now = BOUNDARY + timedelta(seconds=5)

    again = [sent(receiver, source, name) for _ in range(2)]
    assert (first, again) == ("accepted", ["duplicate", "duplicate"])
    assert count(receiver, source) == stored


@pytest.mark.parametrize("name", ["dropbox", "clickup"])
@pytest.mark.parametrize(
    ("seconds", "status"),
    [(49, "duplicate"), (60, "accepted"), (61, "accepted"), (-49, "duplicate"), (-60, "accepted")],
)
def test_equal_body_is_another_event_a_period_away_and_no_sooner(receiver, source, name, seconds, status):
    receiver.now = BOUNDARY - timedelta(seconds=5)
    sent(receiver, source, name)

    receiver.now += timedelta(seconds=seconds)

    assert sent(receiver, source, name) == status


def changed(receiver, source, calendar, seconds, chosen=ChosenIds()):  # noqa: B008  frozen
    """Send what Acuity says of one appointment so long after the boundary, and return how it was answered."""
    [case, *_] = [case for case in captured_of("acuity") if case.is_genuine]
    receiver.add(source, with_chosen_ids(case.provider, chosen), case.secret)
    receiver.now = BOUNDARY + timedelta(seconds=seconds)
    return receiver.send(source, appointment(case, calendar)).json["status"]


@pytest.mark.parametrize(("first", "second"), [(50, 80), (10, 20), (10, 10), (1, -1)])
def test_other_body_of_one_appointment_is_another_event_however_soon_it_comes(
    receiver, source, first, second
):
    assert changed(receiver, source, 1, first) == "accepted"
    assert changed(receiver, source, 2, second) == "accepted"
    assert changed(receiver, source, 1, second) == changed(receiver, source, 2, first) == "duplicate"
    assert count(receiver, source) == 2


@pytest.mark.parametrize(("ahead", "behind"), [(0.2, -0.2), (20, -20)])
def test_copy_at_a_receiver_whose_clock_is_behind_is_a_duplicate(receiver, source, ahead, behind):
    assert (changed(receiver, source, 1, ahead), changed(receiver, source, 1, behind)) == (
        "accepted",
        "duplicate",
    )


@pytest.mark.parametrize(("arrived", "events"), [(-10, 1), (-70, 2)])
def test_what_was_quarantined_before_its_retry_is_no_second_event(receiver, source, arrived, events):
    changed(receiver, source, 1, 10)
    [case, *_] = [case for case in captured_of("acuity") if case.is_genuine]
    at = BOUNDARY + timedelta(seconds=arrived)

    receiver.app.extensions["hookonce"].reverify(
        receiver.sources[source], appointment(case, 1), at, store=True
    )

    assert count(receiver, source) == events


@pytest.mark.parametrize("chosen", [ChosenIds(("$.id", "$.calendarID")), ChosenIds(is_scoped=True)])
def test_retry_of_what_came_before_an_operator_chose_ids_is_a_duplicate(receiver, source, chosen):
    assert changed(receiver, source, 1, 10) == "accepted"

    assert changed(receiver, source, 1, 40, chosen) == "duplicate"
    assert changed(receiver, source, 2, 40, chosen) == "accepted"


def appointment(case, calendar):
    body = b"action=appointment.changed&id=77&calendarID=%d" % calendar
    signature = b64encode(hmac.digest(case.secret.encode(), body, "sha256")).decode()
    return replace(
        case.delivery,
        body=body,
        headers={**case.delivery.headers, "x-acuity-signature": signature},
        readings={},
    )
