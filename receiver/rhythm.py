"""When a source is silent that never is: learned from the hours of the week in which it always brought something.

An alarm that is wrong is worse than none, so silence counts only where the past leaves no doubt: at least
`LEAST_WEEKS` weeks, and of each hour the least that it or a neighbour (summer time moves them) brought in any
of those weeks. A sparse source, a night or a weekend adds nothing to that sum; nor does a week with an outage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

HOUR = timedelta(hours=1)
WEEK = timedelta(weeks=1)
LEAST_WEEKS = 4
MOST_WEEKS = 8
LEAST_DUE = 20
"""Deliveries that must be missing before a silence means anything."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What a silence left out: at least `due` deliveries, by the same hours of the last `weeks` weeks."""

    due: int
    weeks: int


def missing(hours: Mapping[datetime, int], silent_since: datetime, now: datetime) -> Missing | None:
    """Say what a source that was silent since then should have brought; None where that is not certain.

    `hours` holds its deliveries by full hour (UTC); hours without any may be absent.
    """
    weeks = min(MOST_WEEKS, (silent_since - min(hours, default=silent_since)) // WEEK)
    if weeks < LEAST_WEEKS:
        return None
    due = 0
    hour = _full(silent_since) + HOUR
    while hour + HOUR <= now and hour < silent_since + WEEK:
        due += min(_least(hours, hour - n * WEEK) for n in range(1, weeks + 1))
        hour += HOUR
    return Missing(due, weeks) if due >= LEAST_DUE else None


def _least(hours: Mapping[datetime, int], hour: datetime) -> int:
    return min(hours.get(hour + n * HOUR, 0) for n in (-1, 0, 1))


def _full(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
