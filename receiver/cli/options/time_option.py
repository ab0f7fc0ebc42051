"""The one way to say since and until when: `90s 15m 2h 7d 4w` ago, an ISO date or time, `today`, `yesterday`.

A date or time without an offset is this machine's own, since that is the clock its reader looks at.
"""

from datetime import datetime

import click

from hookonce.receiver.config.durations import parse_time


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


SINCE = Since()
