"""Dead letters: of what events died, so that one cause is one row: an issue, or without one an error's text."""

import os
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from hookonce.receiver.desk import content
from hookonce.receiver.desk.filters import EventFilter, Hinted, hint
from hookonce.receiver.desk.models import Identifier, IssueId, Ours, ResponseModel
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.dead_letters import MAX_DEATHS, Death
from hookonce.receiver.ledger.states import EventStatus

MAX_NAMED = 5
"""So many events of a group are named; `/events` with its issue, or with its handler and error, has all."""
_MAX_PATTERN_LENGTH = 200
# What differs from event to event within one cause: ids, numbers, hashes, addresses.
_VARIES = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22,}|\b0x[0-9a-fA-F]+|\b[0-9a-fA-F]{12,}\b"
    r"|\b[a-z]{2,6}_(?=\w*\d)\w{6,}|\d+"
)


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
    issue: IssueId | None = Field(
        default=None, description="the issue that they are of, and no other event; null where none is known"
    )


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
    """Say of what events died, by handler and issue; by the error's text what has none."""
    found = [row.id for row in events.events(desk.connection, asked.wanted_by(desk), MAX_DEATHS)]
    causes: dict[tuple[str | None, str], list[Death]] = {}
    for death in content.deaths_of(desk, found):
        causes.setdefault((death.handler, death.issue or _pattern(death)), []).append(death)
    groups = map(_group, causes.values())
    return DeadLetters(
        data=sorted(groups, key=lambda group: (-group.count, group.handler or "", group.error)),
        is_complete=len(found) < MAX_DEATHS,
        hint=hint(asked.source, found, desk.settings.sources),
    )


def pattern_of(error: str) -> str:
    """Return the beginning of an error with `*` for what varies within one cause, and for the rest."""
    line = error.splitlines()[0][:_MAX_PATTERN_LENGTH] if error else ""
    return re.sub(r"\*[*\s]*\*", "*", _VARIES.sub("*", line) + "*")


def _pattern(death: Death) -> str:
    return pattern_of((death.error or "").strip()) if death.handler else ""


def _group(deaths: Sequence[Death]) -> DeadLetterGroup:
    """Sum up dead runs of one cause, the newest of which is the first."""
    first, *others = sorted({_pattern(death) for death in deaths})
    numbers = sorted({death.event for death in deaths}, reverse=True)
    return DeadLetterGroup(
        handler=deaths[0].handler,
        error=os.path.commonprefix([first, *others]) + "*" if others else first,  # noqa: RUF071  of texts
        example=(deaths[0].error or "").strip(),
        count=len(numbers),
        newest_events=numbers[:MAX_NAMED],
        sources=sorted({death.source for death in deaths}),
        newest_at=max(death.finished_at or death.received_at for death in deaths),
        issue=deaths[0].issue,
    )
