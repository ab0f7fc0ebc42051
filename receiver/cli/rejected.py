"""`hookonce rejected` and `hookonce conflicts`: what was refused, and what came twice with two bodies."""

from datetime import datetime

import click

from providers import Reason
from receiver.cli.servers import configured, ledger
from receiver.cli.tables import print_json, show
from receiver.cli.times import SINCE
from receiver.ledger import desk

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
_LIMIT = click.option("--limit", default=50, show_default=True, type=click.IntRange(0), help="0 = all.")
_SINCE = click.option("--since", type=SINCE, help="90s, 15m, 2h, 7d, today, 2026-01-31.")
_SOURCE = click.option("--source", help="Only of this source.")


@click.group()
def rejected() -> None:
    """List deliveries that were refused. Kept are the newest; `hookonce stats` counts them all."""


@rejected.command("list")
@_SOURCE
@click.option(
    "--reason", type=click.Choice([reason.value for reason in Reason]), help="Only for this reason."
)
@_SINCE
@_LIMIT
@_JSON
def list_rejected(
    source: str | None, reason: str | None, since: datetime | None, limit: int, *, as_json: bool
) -> None:
    """List refused deliveries, newest first."""
    settings = configured()
    with ledger(settings) as connection:
        rows = list(
            desk.rejected(
                connection, settings.keyring, source=source, reason=reason, since=since, limit=limit
            )
        )
    if as_json:
        for row in rows:
            row["body_prefix"] = row["body_prefix"].decode(errors="replace")
            print_json(row)
        return
    columns = ("rejected_at", "source", "reason", "detail")
    show([name.replace("_", " ") for name in columns], [[row[name] for name in columns] for row in rows])


@click.group()
def conflicts() -> None:
    """List events that came with two bodies under one id; `events show ID --json` has the bodies."""


@conflicts.command("list")
@_SOURCE
@_SINCE
@_LIMIT
@_JSON
def list_conflicts(source: str | None, since: datetime | None, limit: int, *, as_json: bool) -> None:
    """List the other bodies, newest first; the ledger's row keeps the body that came first."""
    with ledger(configured()) as connection:
        rows = list(desk.conflicts(connection, source, since, limit))
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = ("event", "source", "event_id", "type", "first_at", "last_at", "deliveries", "bytes")
    show([name.replace("_", " ") for name in columns], [[row[name] for name in columns] for row in rows])
