"""Commands of clients: what came under a key at `/commands/<name>`, and what became of it."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.desk.models import Page, Paged, Text, Time
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger import commands
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel


class CommandsQuery(Paged):
    """Which commands."""

    account: Text | None = Field(None, description="only of this account")
    since: Time | None = Field(None, description="only received then or later: 90s, 15m, 2h, 7d, a time")


class ClientCommand(ResponseModel):
    """A command: an event with one run, whose handler has its name."""

    id: Identifier
    name: Ours
    account: str | None
    state: Literal["in_progress", "completed", "failed_retryable", "failed_final"]
    received_at: datetime
    deliveries: int


class ClientCommands(Page[ClientCommand]):
    """Commands, newest first."""


@action(scope=Scope.READ)
def list_client_commands(desk: Desk, asked: CommandsQuery) -> ClientCommands:
    """List the commands of clients, newest first."""
    wanted = Filter(provider=COMMAND, account=asked.account, since=asked.since)
    rows = list(events.events(desk.connection, wanted, asked.limit, asked.cursor))
    names = {(row.source, row.event_id) for row in rows}
    states = commands.find(desk.connection, names, desk.settings.keyring)
    return ClientCommands(
        data=[
            ClientCommand(
                id=row.id,
                name=row.source,
                account=row.account,
                state=states[row.source, row.event_id].state.value,
                received_at=row.received_at,
                deliveries=row.deliveries,
            )
            for row in rows
            if (row.source, row.event_id) in states
        ],
        next=rows[-1].id if len(rows) == asked.limit else None,
    )
