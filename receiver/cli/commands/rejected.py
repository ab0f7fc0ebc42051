"""`hookonce rejected` and `hookonce conflicts`: what was refused, and what came twice with two bodies."""

from datetime import datetime
from functools import partial

import click

from hookonce.providers import Reason
from hookonce.receiver.cli.desk import desk, rows
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
from hookonce.receiver.desk.rejected import ConflictsQuery, RejectedQuery
from hookonce.receiver.desk.rejected import list_conflicts as list_conflicts_
from hookonce.receiver.desk.rejected import list_rejected as list_rejected_


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
    asked = partial(
        RejectedQuery, source=source, reason=Reason(reason) if reason else None, since=since, until=until
    )
    with desk() as here:
        found = list(rows(here, list_rejected_, asked, limit))
    if as_json:
        for row in found:
            print_json(row.model_dump())
        return
    show(
        ("rejected at", "source", "reason", "detail"),
        [(row.rejected_at, row.source, row.reason, row.detail) for row in found],
        empty="nothing was rejected, as far as these options go; `hookonce stats` counts all",
    )
    if not found:
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
    asked = partial(ConflictsQuery, source=source, since=since, until=until)
    with desk() as here:
        found = list(rows(here, list_conflicts_, asked, limit))
    if as_json:
        for row in found:
            print_json(row.model_dump())
        return
    columns = ("event", "source", "event_id", "type", "first_at", "last_at", "deliveries", "bytes")
    show(
        [name.replace("_", " ") for name in columns],
        [[getattr(row, name) for name in columns] for row in found],
        empty="no event came with two bodies",
    )
