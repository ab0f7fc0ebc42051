from datetime import UTC, datetime, timedelta

import pytest

from hookonce.jobs.alerts.missing_deliveries import MissingDeliveries, missing_deliveries

HOUR, WEEK = timedelta(hours=1), timedelta(weeks=1)
MONDAY = datetime(2031, 5, 5, tzinfo=UTC)
NOON = MONDAY + 12 * HOUR


def history(weeks, per_hour=10, *, busy=range(24), skip=()):
    """Deliveries by hour up to noon of that Monday, as many in each busy hour."""
    hours = (NOON - n * HOUR for n in range(1, weeks * 168 + 1))
    return {hour: per_hour for hour in hours if hour.hour in busy and hour not in skip}


def test_rhythm_says_what_a_busy_source_left_out():
    found = missing_deliveries(history(6), NOON, NOON + 3 * HOUR + timedelta(minutes=10))

    assert found == MissingDeliveries(due=20, weeks=6)


@pytest.mark.parametrize(
    ("hours", "silence"),
    [
        ({}, 24 * HOUR),
        (history(3), 24 * HOUR),  # too young to tell
        (history(6), 2 * HOUR),  # one full hour: less than LEAST_DUE
        (history(8, per_hour=1), 12 * HOUR),  # sparse
        (history(8, per_hour=500, busy={9}), 72 * HOUR),  # a nightly batch: its neighbours are empty
        (history(6, busy=range(12)), 10 * HOUR),  # it is never there in the afternoon
        (history(6, skip={NOON - n * HOUR for n in range(150, 175)}), 20 * HOUR),  # a day was missing once
    ],
)
def test_rhythm_is_not_sure_of_a_source_that_may_be_silent(hours, silence):
    assert missing_deliveries(hours, NOON, NOON + silence) is None


def test_rhythm_counts_what_is_due_after_a_silent_night():
    office = history(5, per_hour=30, busy=range(8, 18))
    evening = MONDAY + 18 * HOUR
    office |= {MONDAY + n * HOUR: 30 for n in range(12, 18)}

    assert missing_deliveries(office, evening, evening + 14 * HOUR) is None
    assert missing_deliveries(office, evening, evening + 16 * HOUR) == MissingDeliveries(30, 5)
