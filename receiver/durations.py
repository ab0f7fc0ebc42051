"""Times as people write them: spans (`90s`, `15m`, `2h`, `7d`, `4w`), and moments relative to now."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

_FORM = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_DAYS_AGO = {"today": 0, "yesterday": 1}


def parse_duration(text: object) -> timedelta:
    """Read a whole number with its unit. Raises: ValueError saying what was expected."""
    parts = _FORM.fullmatch(text.lower()) if isinstance(text, str) else None
    if parts is None:
        raise ValueError("expected a number with its unit: 90s, 15m, 2h, 7d or 4w")
    return int(parts[1]) * UNITS[parts[2]]


def parse_time(text: str, now: datetime) -> datetime:
    """Read a point in time, relative to `now` (aware, in the zone of the reader); return aware UTC.

    Raises: ValueError saying what was expected.
    """
    text = text.strip()
    if text.lower() in _DAYS_AGO:
        day = now - timedelta(days=_DAYS_AGO[text.lower()])
        return day.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
    with suppress(ValueError, OverflowError):
        return (now - parse_duration(text)).astimezone(UTC)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(no_time(text)) from None


def no_time(text: str) -> str:
    """Return the refusal of a text that is no point in time."""
    times = "a span (90s, 15m, 2h, 7d), today, yesterday, 2026-01-31, or a time with its offset (2026-01-31T14:00:00Z)"
    return f"{text!r} is not a time; expected {times}"


def format_duration(length: timedelta) -> str:
    """Return a span in its largest unit that keeps it nearly whole: `90 s`, `15 min`, `2 h`, `7 d`."""
    for unit, word in ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min")):
        if length >= 2 * unit or length == unit:
            return f"{length // unit} {word}"
    return f"{length // timedelta(seconds=1)} s"
