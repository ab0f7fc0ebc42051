"""`quarantine` of a source: which refused deliveries are kept whole, sealed, and how many for how long."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from receiver.spans import said, span

LONGEST = timedelta(days=30)
_SIZE = re.compile(r"(\d{1,6})([kmg])b", re.ASCII)
_UNITS = {"k": 1000, "m": 1000**2, "g": 1000**3}


def in_bytes(text: object) -> int:
    """Read `500kB`, `10MB` or `1GB`. Raises: ValueError saying what was expected."""
    parts = _SIZE.fullmatch(text.lower()) if isinstance(text, str) else None
    if parts is None or not int(parts[1]):
        raise ValueError("expected a number with its unit: 500kB, 10MB or 1GB")
    return int(parts[1]) * _UNITS[parts[2]]


def _bounded(time: timedelta) -> timedelta:
    if not timedelta(0) < time <= LONGEST:
        raise ValueError(f"expected {said(LONGEST)} at most")
    return time


class Quarantine(BaseModel):
    """What is kept of what a source refuses: `quarantine = true` stands for the defaults; needs `encryption_keys`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(
        default=1000, ge=1, le=100_000, description="deliveries at most; half of the room an hour"
    )
    size: Annotated[int, BeforeValidator(in_bytes)] = Field(
        default=10_000_000, description="bytes of all of them, like `500kB`, `10MB` or `1GB`"
    )
    time: Annotated[timedelta, BeforeValidator(span), AfterValidator(_bounded)] = Field(
        default=timedelta(days=7),
        description="how long each stays; 30d at most, and a day less than `keep_events`",
    )
    reasons: list[Literal["bad_signature", "stale", "no_secret"]] = Field(
        default=["bad_signature", "stale", "no_secret"], description="for which of these it was refused"
    )


def spread(said: object) -> object:
    """Let `true` stand for all the defaults, and `false` for none."""
    if isinstance(said, bool):
        return Quarantine() if said else None
    return said


def misplaced(
    source: str, bounds: Quarantine | None, longest: timedelta, *, is_sealed: bool
) -> Iterator[str]:
    """Find a quarantine that keeps deliveries in the clear, or longer than it is remembered what was handled."""
    if bounds and not is_sealed:
        yield (
            f"source '{source}': quarantine keeps whole deliveries and needs encryption_keys in [receiver]; "
            "`hookonce keys generate` makes one"
        )
    if bounds and bounds.time > longest:
        yield (
            f"source '{source}': what is in quarantine for {said(bounds.time)} may have been handled and forgotten; "
            f"expected {said(longest)} at most, a day less than keep_events in [receiver]"
        )
