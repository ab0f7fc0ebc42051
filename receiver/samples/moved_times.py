"""Every sample is written as if its event happened at WRITTEN; here it happens at another time.

Every time in it moves by the same span, in the form that the sender writes: a 30-day period is still 30 days long.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

WRITTEN = datetime(2026, 1, 15, 12, tzinfo=UTC)

_SECOND = timedelta(seconds=1)
_EPOCH = int(WRITTEN.timestamp())
_REACH = (
    400 * 86_400
)  # a number this near to WRITTEN is a time; amounts, counts and ids of samples stay clear of it
_SECONDS = range(_EPOCH - _REACH, _EPOCH + _REACH)
_SCALES = {10: 1, 13: 1000, 16: 1_000_000, 19: 1_000_000_000}
_CLOCK = re.compile(
    r"(?P<clock>(?P<year>\d{4})-\d\d-\d\d[T ]\d\d:\d\d(?P<second>:\d\d)?)"
    r"(?P<rest>(?:[.,]\d{1,9})?(?: ?Z| ?UTC| ?[+-]\d\d:?\d\d)?)"
)
_YEARS = range(WRITTEN.year - 1, WRITTEN.year + 2)
_MAIL = re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} (\d{4}) \d\d:\d\d:\d\d (?:[+-]\d{4}|GMT)")
_NUMBER = re.compile(r"(\d{10}|\d{13}|\d{16}|\d{19})(\.\d{1,9})?")


def seconds_since_written(now: datetime) -> int:
    """Return by how many whole seconds times are to move for an event that happens at `now`, an aware time."""
    return (now - WRITTEN) // _SECOND


def moved(value: Any, seconds: int) -> Any:  # noqa: ANN401  any JSON
    """Return `value` with every time in it so many seconds later."""
    match value:
        case dict():
            return {key: moved(inner, seconds) for key, inner in value.items()}
        case list():
            return [moved(inner, seconds) for inner in value]
        case str():
            return _text(value, seconds)
        case float() if int(value) in _SECONDS:
            return round(value + seconds, 6)
        case int() if scale := _scale(str(value)):
            return value + seconds * scale
    return value


def moved_text(text: str, seconds: int) -> str:
    """Return a text, as XML, with the times that have a date and a clock moved."""
    return _CLOCK.sub(lambda found: _text(found[0], seconds), text)


def _scale(digits: str) -> int:
    """Return how many units a second has in a time of so many digits; 0 for what is no time."""
    scale = _SCALES.get(len(digits), 0) if digits.isdecimal() else 0
    return scale if scale and int(digits) // scale in _SECONDS else 0


def _text(text: str, seconds: int) -> str:
    if (clock := _CLOCK.fullmatch(text)) and int(clock["year"]) in _YEARS:
        moment = datetime.fromisoformat(clock["clock"]) + seconds * _SECOND
        return moment.isoformat(text[10], "seconds" if clock["second"] else "minutes") + clock["rest"]
    if (mail := _MAIL.fullmatch(text)) and int(mail[1]) in _YEARS:
        said = format_datetime(parsedate_to_datetime(text) + seconds * _SECOND)
        return said.replace("+0000", "GMT") if text.endswith("GMT") else said
    if (number := _NUMBER.fullmatch(text)) and (scale := _scale(number[1])):
        return f"{int(number[1]) + seconds * scale}{number[2] or ''}"
    return text
