"""Times as people tell them: `12s ago`, `3m ago`, `in 5m`."""

from datetime import UTC, datetime

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago a time was, or in how long it comes, in its largest unit; `-` for none."""
    if moment is None:
        return "-"
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    size, unit = next((each for each in _UNITS if abs(seconds) >= each[0]), _UNITS[-1])
    number = abs(seconds) // size
    if number == 0:
        return "now"
    return f"{number}{unit} ago" if seconds > 0 else f"in {number}{unit}"


def soon(moment: datetime | None) -> str:
    """Return in how long a time comes; `now` if it has."""
    return "now" if moment is not None and moment <= datetime.now(UTC) else ago(moment)
