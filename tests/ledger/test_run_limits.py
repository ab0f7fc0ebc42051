from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from math import ceil

import pytest

from hookonce.receiver.ledger.runs.run_limits import Rate, Schedule

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/m", Rate(100, MINUTE)),
        ("1/s", Rate(1, timedelta(seconds=1))),
        ("5000/h", Rate(5000, timedelta(hours=1))),
        ("10/d", Rate(10, timedelta(days=1))),
    ],
)
def test_rate_is_a_number_in_a_period(text, rate):
    assert Rate.parse(text) == rate


@pytest.mark.parametrize(
    "text", ["", "100", "100/min", "0/m", "-1/s", "1.5/s", "100/m ", "\u0661/s", 100, None]
)
def test_other_rates_are_refused(text):
    with pytest.raises(ValueError, match="is not a rate"):
        Rate.parse(text)


@pytest.mark.parametrize("text", ["1/s", "9/s", "10/m", "100/m", "101/m", "5000/h", "10/d"])
def test_no_period_has_more_starts_than_the_rate_and_nearly_as_many(text):
    rate = Rate.parse(text)
    schedule = Schedule(rate, NOW - timedelta(days=400), NOW)

    times = [max(schedule.time_for(None), NOW) for _ in range(4 * rate.count)]

    assert times == sorted(times)
    ends = [bisect_left(times, start + rate.period) for start in times[: 3 * rate.count]]
    starts = [end - bisect_left(times, start) for start, end in zip(times, ends, strict=False)]
    assert max(starts) <= rate.count
    assert starts[-1] >= rate.count * 9 // 10


@pytest.mark.parametrize(
    ("text", "share"), [("10/s", 2), ("100/s", 2), ("19/m", 1.1), ("100/m", 1.1), ("1000/h", 1.1)]
)
def test_late_starts_add_a_tenth_at_most_to_a_period_but_as_many_again_to_a_second(text, share):
    rate = Rate.parse(text)
    schedule = Schedule(rate, NOW - timedelta(days=400), NOW)
    times = [max(schedule.time_for(None), NOW) for _ in range(4 * rate.count)]
    look = NOW + 2 * rate.period  # a worker that comes as late as may be, once
    starts = sorted(look if look - rate.late <= time <= look else time for time in times)

    most = max(bisect_left(starts, start + rate.period) - n for n, start in enumerate(starts))

    assert most <= ceil(rate.count * share)
    assert most > rate.count or share < 2


def test_each_run_beyond_the_rate_has_a_time_of_its_own():
    schedule = Schedule(Rate(100, MINUTE), NOW, NOW)

    times = [schedule.time_for(None) for _ in range(1000)]

    assert len(set(times)) == 1000
    assert times[-1] - NOW > 8 * MINUTE


def test_run_that_comes_at_its_time_keeps_it_and_moves_nobody():
    schedule = Schedule(Rate(100, MINUTE), NOW + MINUTE, NOW)

    assert schedule.time_for(NOW - timedelta(seconds=1)) <= NOW
    assert schedule.head == NOW + MINUTE


def test_times_end_before_the_calendar_does():
    schedule = Schedule(Rate.parse("1/d"), datetime.max.replace(tzinfo=UTC) - timedelta(hours=1), NOW)

    times = [schedule.time_for(None) for _ in range(3)]

    assert NOW < times[-1] < NOW + timedelta(days=4000)
    assert schedule.head < NOW + timedelta(days=4000)


def test_times_that_nobody_used_are_not_made_up_for():
    rate = Rate(100, MINUTE)
    schedule = Schedule(rate, NOW - timedelta(hours=1), NOW)

    at_once = [schedule.time_for(NOW - timedelta(minutes=30)) for _ in range(100)]

    assert sum(each <= NOW for each in at_once) == rate.burst
