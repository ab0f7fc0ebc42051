"""The one way to say since and until when: `90s 15m 2h 7d 4w` ago, an ISO date or time, `today`, `yesterday`.

A date or time without an offset is this machine's own, since that is the clock its reader looks at. For how long
something lasts is said by a span alone.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import click

from hookonce.receiver.durations import parse_duration, parse_time


class _Read(click.ParamType):  # type: ignore[type-arg]  # older versions of click take no argument
    """The type of what a function reads."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Read the option; a usage error where it can't be read."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def from_now(_ctx: click.Context, param: click.Parameter, span: timedelta) -> datetime:
    """Return when a span ends that begins now; a usage error where that is no time."""
    try:
        return datetime.now(UTC) + span
    except OverflowError:
        raise click.BadParameter("it ends behind the last year there is", param=param) from None


SINCE = _Read("time", lambda text: parse_time(text, datetime.now().astimezone()))
SPAN = _Read("span", parse_duration)
