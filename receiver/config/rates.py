"""Limits as people write them: `600/m`, a number for each second, minute, hour or day."""

import re
from datetime import timedelta

from hookonce.receiver.source import Limit

_FORM = re.compile(r"([1-9][0-9]{0,9})/([smhd])", re.ASCII)
_PERIODS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


def parse_limit(text: object) -> Limit:
    """Read `100/m`. Raises: ValueError saying what was expected."""
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError('expected a whole number (1 to 9999999999) per s, m, h or d, like "600/m"')
    return Limit(int(match[1]), _PERIODS[match[2]])


def limit_or_none(value: object) -> Limit | None:
    """Read what a setting holds, which may have been read before."""
    return value if value is None or isinstance(value, Limit) else parse_limit(value)
