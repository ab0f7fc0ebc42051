"""`hookonce commands`: what clients asked for under a key."""

from datetime import datetime
from functools import partial

import click

from hookonce.receiver.cli.desk import desk, rows
from hookonce.receiver.cli.options.event_options import AS_JSON, LIMIT, SINCE_OPTION
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.desk.client_commands import CommandsQuery, list_client_commands


@click.command()
@click.option("--account", help="Only of this account.")
@SINCE_OPTION
@LIMIT
@AS_JSON
def commands(account: str | None, since: datetime | None, limit: int, *, as_json: bool) -> None:
    """List commands of clients, newest first, and what became of each; `hookonce events show ID` has all of one."""
    with desk() as here:
        asked = partial(CommandsQuery, account=account, since=since)
        found = list(rows(here, list_client_commands, asked, limit))
    if as_json:
        for each in found:
            print_json(each.model_dump())
        return
    show(
        ("id", "command", "account", "state", "received", "asked"),
        [(c.id, c.name, c.account, c.state, c.received_at, f"{c.deliveries} times") for c in found],
        empty="no client has asked for a command; [commands.NAME] in hookonce.toml takes them",
    )
