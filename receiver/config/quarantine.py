"""`quarantine` of a source: which rejected deliveries are kept whole, sealed, and how many for how long."""

import re
from collections.abc import Iterator
from datetime import timedelta

from hookonce.receiver.config.durations import format_duration, parse_duration
from hookonce.receiver.config.file_mistakes import with_read
from hookonce.receiver.source import MAX_QUARANTINE_TIME, Quarantine

_SIZE = re.compile(r"(\d{1,6})([kmg])b", re.ASCII)
_UNITS = {"k": 1000, "m": 1000**2, "g": 1000**3}


def parse_size(text: object) -> int:
    """Read `500kB`, `10MB` or `1GB`. Raises: ValueError saying what was expected."""
    parts = _SIZE.fullmatch(text.lower()) if isinstance(text, str) else None
    if parts is None or not int(parts[1]):
        raise ValueError("expected a number with its unit: 500kB, 10MB or 1GB")
    return int(parts[1]) * _UNITS[parts[2]]


def _bounded_time(text: object) -> timedelta:
    time = parse_duration(text)
    if not timedelta(0) < time <= MAX_QUARANTINE_TIME:
        raise ValueError(f"expected {format_duration(MAX_QUARANTINE_TIME)} at most")
    return time


def read_quarantine(value: object) -> object:
    """Return what `true` and `false` stand for, or a table with its texts read. Raises: ValueError."""
    if isinstance(value, bool):
        return Quarantine() if value else None
    return with_read(value, size=parse_size, time=_bounded_time)


def quarantine_mistakes(
    source: str, bounds: Quarantine | None, max_time: timedelta, *, is_sealed: bool
) -> Iterator[str]:
    """Find a quarantine that keeps deliveries in the clear, or longer than it is remembered what was handled."""
    if bounds and not is_sealed:
        yield (
            f"source '{source}': quarantine keeps whole deliveries and needs encryption_keys in [receiver]; "
            "`hookonce keys generate` makes one"
        )
    if bounds and bounds.time > max_time:
        yield (
            f"source '{source}': what is in quarantine for {format_duration(bounds.time)} may have been handled and "
            "forgotten; "
            f"expected {format_duration(max_time)} at most, a day less than keep_events in [receiver]"
        )
