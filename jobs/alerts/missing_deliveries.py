"""When a source is silent that never is: learned from the hours of the week in which it always brought something.

An alarm that is wrong is worse than none, so silence counts only where the past leaves no doubt: at least
`MIN_WEEKS` weeks, and of each hour the least that it or a neighbour (summer time moves them) brought in any
of those weeks. A sparse source, a night or a weekend adds nothing to that sum; nor does a week with an outage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

HOUR = timedelta(hours=1)
WEEK = timedelta(weeks=1)
MIN_WEEKS = 4
MAX_WEEKS = 8
MIN_EXPECTED = 20
"""Deliveries that must be missing before a silence means anything."""


@dataclass(frozen=True, slots=True)
class MissingDeliveries:
    """Deliveries that a silence left out: at least `due`, by the same hours of the last `weeks` weeks."""

    due: int
    weeks: int


def missing_deliveries(
    hours: Mapping[datetime, int], silent_since: datetime, now: datetime
) -> MissingDeliveries | None:
    """Return what a source that was silent since then should have brought; None where that is not certain.

    `hours` holds its deliveries by full hour (UTC); hours without any may be absent.
    """
    weeks = min(MAX_WEEKS, (silent_since - min(hours, default=silent_since)) // WEEK)
    if weeks < MIN_WEEKS:
        return None
    due = 0
    hour = _full(silent_since) + HOUR
    while hour + HOUR <= now and hour < silent_since + WEEK:
        due += min(_least(hours, hour - n * WEEK) for n in range(1, weeks + 1))
        hour += HOUR
    return MissingDeliveries(due, weeks) if due >= MIN_EXPECTED else None


def _least(hours: Mapping[datetime, int], hour: datetime) -> int:
    return min(hours.get(hour + n * HOUR, 0) for n in (-1, 0, 1))


def _full(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
