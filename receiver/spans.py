"""Spans of time as people write them: `90s`, `15m`, `2h`, `7d`, `4w`."""

import re
from datetime import timedelta

_FORM = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def span(text: object) -> timedelta:
    """Read a whole number with its unit. Raises: ValueError saying what was expected."""
    parts = _FORM.fullmatch(text.lower()) if isinstance(text, str) else None
    if parts is None:
        raise ValueError("expected a number with its unit: 90s, 15m, 2h, 7d or 4w")
    return int(parts[1]) * _UNITS[parts[2]]
