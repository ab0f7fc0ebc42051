"""Limits as people write them: `600/m`, a number for each second, minute, hour or day."""

import re

from hookonce.receiver.config.durations import UNITS
from hookonce.receiver.source import Limit

_FORM = re.compile(r"([1-9][0-9]{0,9})/([smhd])", re.ASCII)


def parse_limit(text: object) -> Limit:
    """Read `100/m`, or return a limit that was read before. Raises: ValueError saying what was expected."""
    if isinstance(text, Limit):
        return text
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError('expected a whole number (1 to 9999999999) per s, m, h or d, like "600/m"')
    return Limit(int(match[1]), UNITS[match[2]])
