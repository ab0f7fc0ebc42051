"""`quarantine` of a source: which rejected deliveries are kept whole, sealed, and how many for how long."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hookonce.receiver.config.durations import format_duration, parse_duration
from hookonce.receiver.source import MAX_QUARANTINE_TIME, Quarantine

_SIZE = re.compile(r"(\d{1,6})([kmg])b", re.ASCII)
_UNITS = {"k": 1000, "m": 1000**2, "g": 1000**3}


def parse_size(text: object) -> int:
    """Read `500kB`, `10MB` or `1GB`. Raises: ValueError saying what was expected."""
    parts = _SIZE.fullmatch(text.lower()) if isinstance(text, str) else None
    if parts is None or not int(parts[1]):
        raise ValueError("expected a number with its unit: 500kB, 10MB or 1GB")
    return int(parts[1]) * _UNITS[parts[2]]


def _bounded(time: timedelta) -> timedelta:
    if not timedelta(0) < time <= MAX_QUARANTINE_TIME:
        raise ValueError(f"expected {format_duration(MAX_QUARANTINE_TIME)} at most")
    return time


class QuarantineTable(BaseModel):
    """The bounds of a source's quarantine: `quarantine = true` stands for the defaults; needs `encryption_keys`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """deliveries at most; half of the room an hour"""
    size: Annotated[int, BeforeValidator(parse_size)] = 10_000_000
    """bytes of all of them, like `500kB`, `10MB` or `1GB`"""
    time: Annotated[timedelta, BeforeValidator(parse_duration), AfterValidator(_bounded)] = timedelta(days=7)
    """how long each stays; 30d at most, and a day less than `keep_events`"""
    reasons: tuple[Literal["bad_signature", "stale", "no_secret", "bad_body", "too_large"], ...] = (
        "bad_signature",
        "stale",
        "no_secret",
    )
    """for which of these it was rejected"""

    def bounds(self) -> Quarantine:
        """Return what the receiver goes by."""
        return Quarantine(**dict(self))


def expand_defaults(value: object) -> object:
    """Return what `true` and `false` stand for: all the defaults, and no quarantine."""
    if isinstance(value, bool):
        return QuarantineTable() if value else None
    return value


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
