"""Dead letters: of what events died, so that one cause is one row."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from hookonce.receiver.desk.filters import EventFilter, Hinted, hint
from hookonce.receiver.desk.models import Identifier, Ours, ResponseModel
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.dead_groups import Group, grouped
from hookonce.receiver.ledger.queries.dead_letters import MAX_DEATHS, deaths_of
from hookonce.receiver.ledger.states import EventStatus

MAX_NAMED = 5
"""So many events of a group are named; `/events` with its handler and error has all."""


class DeadLetterGroup(ResponseModel):
    """Dead events of one cause; `handler` and `error` find them as parameters of `/events` and of a bulk replay."""

    handler: Ours | None = Field(
        description="null where the event itself can't be read: there is nothing to run"
    )
    error: str = Field(
        description="the beginning of the error, with `*` for what differs from event to event"
    )
    example: str = Field(description="the newest of these errors, in full as far as it is kept")
    count: int
    newest_events: list[Identifier]
    sources: list[Ours]
    newest_at: datetime | None


class DeadLetters(Hinted):
    """Dead events by cause, the most frequent first."""

    data: list[DeadLetterGroup]
    is_complete: bool = Field(
        description=f"false where more than {MAX_DEATHS} are dead: the newest are grouped"
    )


class DeadLettersQuery(EventFilter):
    """Which dead events."""

    status: Literal[EventStatus.DEAD] = EventStatus.DEAD


@action(scope=Scope.READ)
def list_dead_letters(desk: Desk, asked: DeadLettersQuery) -> DeadLetters:
    """Say of what events died, by handler and error."""
    found = [row.id for row in events.events(desk.connection, asked.wanted, MAX_DEATHS)]
    return DeadLetters(
        data=[_row(group) for group in grouped(deaths_of(desk.connection, found))],
        is_complete=len(found) < MAX_DEATHS,
        hint=hint(asked.source, found, desk.settings.sources),
    )


def _row(group: Group) -> DeadLetterGroup:
    return DeadLetterGroup(
        handler=group.handler,
        error=group.pattern,
        example=group.example,
        count=len(group.events),
        newest_events=sorted(group.events, reverse=True)[:MAX_NAMED],
        sources=sorted(group.sources),
        newest_at=group.newest,
    )
