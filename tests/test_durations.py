from datetime import UTC, datetime, timedelta, timezone

import pytest

from hookonce.receiver.durations import parse_time

NOW = datetime(2026, 3, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", datetime(2026, 2, 28, 23, 28, 30, tzinfo=UTC)),
        ("15m", datetime(2026, 2, 28, 23, 15, tzinfo=UTC)),
        ("2H", datetime(2026, 2, 28, 21, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 2, 21, 23, 30, tzinfo=UTC)),
        ("today", datetime(2026, 2, 28, 22, 0, tzinfo=UTC)),
        ("yesterday", datetime(2026, 2, 27, 22, 0, tzinfo=UTC)),
        ("2026-01-31T14:00Z", datetime(2026, 1, 31, 14, tzinfo=UTC)),
        ("2026-01-31 14:00:00+02:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_moment_reads_spans_days_and_iso_times(text, expected):
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "2", "2y", "-2h", "tomorrow", "2026-13-01", "999999w", "٢h"])
def test_moment_says_what_it_expects_when_it_can_not_read(text):
    with pytest.raises(ValueError, match="expected a span"):
        parse_time(text, NOW)
