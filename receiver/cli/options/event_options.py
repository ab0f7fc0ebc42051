"""The options that choose events: the same names and meanings for every command that takes many."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import click

from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options.completion_types import PROVIDERS, SOURCES
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.states import EventStatus

STATUSES = tuple(status.value for status in EventStatus)
_Command = TypeVar("_Command", bound=Callable[..., Any])

SOURCE = click.option("--source", help="Only of this source.", shell_complete=SOURCES)
SINCE_OPTION = click.option(
    "--since", type=SINCE, help="Only received since: 90s, 15m, 2h, 7d, today, yesterday, 2026-01-31."
)
UNTIL_OPTION = click.option("--until", type=SINCE, help="Only received before; written like --since.")
LIMIT = click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(0), help="At most so many; 0 = all."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")

_OPTIONS = (
    SOURCE,
    click.option("--provider", help="Only of this provider.", shell_complete=PROVIDERS),
    click.option("--type", "kind", help="Only of this type; * stands for any text (invoice.*)."),
    click.option("--account", help="Only of this account of the sender's."),
    click.option("--id", "event_id", metavar="PREFIX", help="Only with a sender's id that begins so."),
    click.option("--status", type=click.Choice(STATUSES), help="Only in this status."),
    click.option("--handler", help="Only with a dead run of this handler."),
    click.option(
        "--error", help="Only with a dead run of this error; * stands for any text (TimeoutError*)."
    ),
    click.option(
        "--issue", metavar="ISSUE", help="Only with a dead run of this issue; `hookonce issues` has them."
    ),
    SINCE_OPTION,
    UNTIL_OPTION,
)


def choosing(command: _Command) -> _Command:
    """Add the options of a filter to a command; it takes them as keywords, for `chosen`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen(options: Mapping[str, Any]) -> Filter:
    """Return the filter that the options describe. Raises `click.UsageError` for a span that ends before it begins."""
    require_span(options["since"], options["until"])
    return Filter(
        source=options["source"],
        provider=options["provider"],
        type=options["kind"],
        account=options["account"],
        event_id=options["event_id"],
        status=options["status"],
        handler=options["handler"],
        error=options["error"],
        issue=options["issue"],
        since=options["since"],
        until=options["until"],
    )


def require_span(since: datetime | None, until: datetime | None) -> None:
    """Raise `click.UsageError` where no time is between the two."""
    if since and until and until <= since:
        raise click.UsageError(
            "--until must be later than --since: --since 2h --until 1h is the hour that ended an hour ago"
        )


def doubt(source: str | None) -> None:
    """Warn on stderr that no source is called so, once nothing was found: the name may be misspelt."""
    if source is None:
        return
    from hookonce.receiver.cli.local_sources import sources  # listings start sooner without the configuration
    from hookonce.receiver.config.alerts import ALERTS_SOURCE

    with suppress(ConfigError):
        known = sources(configured())
        if source not in {*known, ALERTS_SOURCE}:
            click.echo(clean(f"no source is called {source!r}{did_you_mean(source, known)}"), err=True)
