"""The one way to say since and until when: `90s 15m 2h 7d 4w` ago, an ISO date or time, `today`, `yesterday`.

A date or time without an offset is this machine's own, since that is the clock its reader looks at. For how long
something lasts is said by a span alone.
"""

from datetime import UTC, datetime, timedelta

import click

from hookonce.receiver.durations import parse_duration, parse_time


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
            return parse_time(value, datetime.now().astimezone())
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Span(click.ParamType):  # type: ignore[type-arg]  # the same
    """The type of what says for how long."""

    name = "span"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Read the option; a usage error where it can't be read."""
        try:
            return value if isinstance(value, timedelta) else parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def from_now(_ctx: click.Context, param: click.Parameter, span: timedelta) -> datetime:
    """Return when a span ends that begins now; a usage error where that is no time."""
    try:
        return datetime.now(UTC) + span
    except OverflowError:
        raise click.BadParameter("it ends behind the last year there is", param=param) from None


SINCE, SPAN = Since(), Span()
