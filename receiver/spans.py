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


def said(length: timedelta) -> str:
    """Say a span in its largest unit that keeps it nearly whole: `90 s`, `15 min`, `2 h`, `7 d`."""
    for unit, word in ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min")):
        if length >= 2 * unit or length == unit:
            return f"{length // unit} {word}"
    return f"{length // timedelta(seconds=1)} s"
