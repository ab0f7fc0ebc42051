"""The one way to say since and until when: `90s 15m 2h 7d 4w` ago, an ISO date or time, `today`, `yesterday`.

A date or time without an offset is this machine's own, since that is the clock its reader looks at.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import click

from receiver.spans import span

_DAYS_AGO = {"today": 0, "yesterday": 1}
_EXPECTED = (
    "expected a span (90s, 15m, 2h, 7d), 'today', 'yesterday', or an ISO date or time "
    "(2026-01-31, 2026-01-31T14:00Z)"
)


def moment(text: str, now: datetime) -> datetime:
    """Read a point in time, relative to `now` (aware, in the zone of the reader); gives aware UTC.

    Raises: ValueError saying what was expected.
    """
    text = text.strip()
    if text.lower() in _DAYS_AGO:
        day = now - timedelta(days=_DAYS_AGO[text.lower()])
        return day.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
    with suppress(ValueError, OverflowError):
        return (now - span(text)).astimezone(UTC)
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no time; {_EXPECTED}") from None


class Since(click.ParamType):  # type: ignore[type-arg]  # older versions of click take no argument
    """The type of `--since` and `--until`."""

    name = "time"

    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Read the option; a usage error where it can't be read."""
        if isinstance(value, datetime):
            return value
        try:
            return moment(value, datetime.now().astimezone())
        except ValueError as error:
            self.fail(str(error), param, ctx)


SINCE = Since()
