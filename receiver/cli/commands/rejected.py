"""`hookonce rejected` and `hookonce conflicts`: what was refused, and what came twice with two bodies."""

from datetime import datetime

import click

from hookonce.providers import Reason
from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.cli.options.event_options import (
    AS_JSON,
    LIMIT,
    SINCE_OPTION,
    SOURCE,
    UNTIL_OPTION,
    doubt,
    require_span,
)
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.ledger.queries.rejected import conflicts as find_conflicts
from hookonce.receiver.ledger.queries.rejected import rejected_deliveries


@click.group()
def rejected() -> None:
    """List deliveries that were rejected. Kept are the newest; `hookonce stats` counts them all."""


@rejected.command("list")
@SOURCE
@click.option(
    "--reason", type=click.Choice([reason.value for reason in Reason]), help="Only for this reason."
)
@SINCE_OPTION
@UNTIL_OPTION
@LIMIT
@AS_JSON
def list_rejected(  # noqa: PLR0913  its options
    source: str | None,
    reason: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """List rejected deliveries, newest first."""
    require_span(since, until)
    settings = configured()
    with ledger(settings) as connection:
        wanted = {"source": source, "reason": reason, "since": since, "until": until}
        rows = list(rejected_deliveries(connection, settings.keyring, **wanted, limit=limit))  # type: ignore[arg-type]
    if as_json:
        for row in rows:
            row["body_prefix"] = row["body_prefix"].decode(errors="replace")
            print_json(row)
        return
    columns = ("rejected_at", "source", "reason", "detail")
    show(
        [name.replace("_", " ") for name in columns],
        [[row[name] for name in columns] for row in rows],
        empty="nothing was rejected, as far as these options go; `hookonce stats` counts all",
    )
    if not rows:
        doubt(source)


@click.group()
def conflicts() -> None:
    """List events that came with two bodies under one id; `events show ID --json` has the bodies."""


@conflicts.command("list")
@SOURCE
@SINCE_OPTION
@UNTIL_OPTION
@LIMIT
@AS_JSON
def list_conflicts(
    source: str | None, since: datetime | None, until: datetime | None, limit: int, *, as_json: bool
) -> None:
    """List the other bodies, newest first. The ledger's row keeps the body that came first."""
    require_span(since, until)
    with ledger() as connection:
        rows = list(find_conflicts(connection, source, since, limit, until=until))
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = ("event", "source", "event_id", "type", "first_at", "last_at", "deliveries", "bytes")
    show(
        [name.replace("_", " ") for name in columns],
        [[row[name] for name in columns] for row in rows],
        empty="no event came with two bodies",
    )
