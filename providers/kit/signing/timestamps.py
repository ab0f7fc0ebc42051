"""Times as senders write them: Unix seconds or milliseconds, or RFC 3339."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from hookonce.providers import Reason, Rejected

Unit = Literal["s", "ms", "iso", "any"]
UNITS: Final[tuple[Unit, ...]] = ("s", "ms", "iso", "any")
TOLERANCE: Final = timedelta(minutes=5)

_LONGEST_AGE: Final = timedelta(days=3650)

_DIGITS: Final = re.compile(r"[0-9]{1,16}")
_NUMBER: Final = re.compile(r"[0-9]{1,16}(?:\.[0-9]{1,9})?")
_ISO: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:[Zz]|[+-]\d\d:?\d\d)", re.ASCII
)
_MILLISECONDS: Final = 10**11
"""From here on a Unix time is taken for milliseconds; as seconds it would be the year 5138."""
_MICROSECONDS: Final = 10**14


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The time that a sender signs: in a header of its own, or under `key` in the signature header.

    `unit` "any" is for senders that say nothing about it, or two things: seconds and milliseconds are told
    apart by size, and `written` is what the sender itself writes. `tolerance` is how old the time may be; None is for
    senders that send an old signature again, or may. `ahead` is how far in our future it may be: minutes for any
    sender, since that is no delivery that somebody kept, but clocks that differ. Vendors' own libraries (Stripe,
    Paddle, Slack, Mux) mostly do not look that way at all.
    """

    header: str = ""
    key: str = ""
    unit: Unit = "s"
    tolerance: timedelta | None = TOLERANCE
    ahead: timedelta = TOLERANCE
    written: Unit | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", self.header.lower())

    def parse(self, text: str) -> float:
        """Return Unix seconds of `text`, which must be plain ASCII digits or RFC 3339 with an offset.

        Raises: Rejected(bad_header).
        """
        if self.unit in {"iso", "any"} and _ISO.fullmatch(text):
            moment = instant(text)
            if moment is not None:
                return moment.timestamp()
        elif self.unit != "iso" and _DIGITS.fullmatch(text):
            return (
                _seconds(int(text)) if self.unit == "any" else int(text) / (1000 if self.unit == "ms" else 1)
            )
        if self.tolerance is None:
            return 0.0  # nobody looks at it, and how it is written is the sender's business
        raise Rejected(
            Reason.BAD_HEADER, f"the signed time in {self.header or self.key!r} is not in {self.unit}"
        )

    def moment(self, text: str) -> datetime:
        """Return the time `text`, aware UTC: a certificate is checked as of then. Raises: Rejected(bad_header)."""
        try:
            return datetime.fromtimestamp(self.parse(text), UTC)
        except (ValueError, OverflowError, OSError):
            raise Rejected(
                Reason.BAD_HEADER, f"the signed time in {self.header or self.key!r} is in no calendar"
            ) from None

    def check(self, seconds: float, now: datetime) -> None:
        """Refuse a time that is older than the tolerance, or further ahead of `now` (aware) than is allowed.

        Raises: Rejected(stale).
        """
        if self.tolerance is None:
            return
        away = now.timestamp() - seconds
        side, limit = ("old", self.tolerance) if away > 0 else ("in the future", self.ahead)
        allowed = limit.total_seconds()
        if abs(away) > allowed:
            said = f"the signed time is {abs(away):.0f} s {side}, {allowed:.0f} s are allowed"
            is_of_this_age = 0 < away < _LONGEST_AGE.total_seconds()
            raise Rejected(Reason.STALE, said, timedelta(seconds=away) if is_of_this_age else None)

    def write(self, now: datetime) -> str:
        """`now` (aware) as the sender would write it."""
        unit = self.written or self.unit
        if unit == "iso":
            return now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return str(int(now.timestamp() * (1000 if unit == "ms" else 1)))


def expect_time(timestamp: Timestamp | None, signed: object, key: str) -> None:
    """Raises: ValueError unless a template has a time where one is declared, and a signature a key where it has one."""
    if isinstance(signed, str) and ("{timestamp}" in signed) != (timestamp is not None):
        raise ValueError(f"a signed time needs a timestamp and a template with {{timestamp}}, got {signed!r}")
    if timestamp and timestamp.key and not key:
        raise ValueError(
            f"the time is under {timestamp.key!r} of a list, and the signature under no key; name its key"
        )


def instant(value: object) -> datetime | None:
    """Return a body's own time as aware UTC, or None if it can't be read: it is shown to people and decides nothing.

    Takes Unix times (s, ms or µs, told apart by size) as numbers, also as text, and ISO 8601; one without an
    offset is taken for UTC.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(_seconds(value), UTC)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _seconds(number: float) -> float:
    if number < _MILLISECONDS:
        return number
    return number / 1000 if number < _MICROSECONDS else number / 1_000_000
