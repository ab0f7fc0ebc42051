"""Dead letters: events that died, by cause (an issue, or without one an error's text), and giving events up."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, computed_field

from hookonce.receiver.desk.filters import EventFilter, Hinted, hint, no_handler
from hookonce.receiver.desk.listed_events import deaths_of
from hookonce.receiver.desk.models import Cursor, IssueId, Reference
from hookonce.receiver.desk.refusals import (
    AFTERWARDS,
    NAMED_OR_CHOSEN,
    Contradictory,
    NotFound,
    left_alone,
)
from hookonce.receiver.desk.registry import Asks, Desk, Plan, action
from hookonce.receiver.desk.replays import named_events
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.queries.run_outcomes import Outcome
from hookonce.receiver.ledger.replay import discards
from hookonce.receiver.ledger.replay.discards import Discarded
from hookonce.receiver.ledger.replay.events import REPLAY_BATCH
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus

MAX_GROUPED = 1000
"""Dead events that are grouped, the newest."""
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
        description=f"false where more than {MAX_GROUPED} are dead: the newest are grouped"
    )


class DeadLettersQuery(EventFilter):
    """Which dead events."""

    status: Literal[EventStatus.DEAD] = EventStatus.DEAD


@action(scope=Scope.READ)
def list_dead_letters(desk: Desk, asked: DeadLettersQuery) -> DeadLetters:
    """Group dead events by cause: by handler and issue, or by the error's text where there is no issue."""
    found = {row.id: row for row in events.events(desk.connection, asked.wanted_by(desk), MAX_GROUPED)}
    causes: dict[tuple[str | None, str], list[Outcome]] = {}
    for death in deaths_of(desk, [*found]):
        causes.setdefault((death.handler, death.issue or _pattern(death)), []).append(death)
    groups = [_group(deaths, found) for deaths in causes.values()]
    return DeadLetters(
        data=sorted(groups, key=lambda group: (-group.count, group.handler or "", group.error)),
        is_complete=len(found) < MAX_GROUPED,
        hint=hint(desk, asked, found),
    )


class DiscardRequest(EventFilter):
    """Which events to discard, by their names or by a filter; with `handler` its runs alone."""

    events: Annotated[list[Reference], Field(max_length=REPLAY_BATCH)] = Field(default_factory=list)
    status: Literal[EventStatus.DEAD, EventStatus.HELD, EventStatus.WAITING, EventStatus.RECEIVED] | None = (
        Field(default=None, description="by a filter: only in this status; dead without one")
    )
    cursor: Cursor | None = Field(default=None, description="`next` of the step before")
    dry_run: bool = False


class Discards(Discarded):
    """The outcome of each event that was named, or found by a filter."""

    dry_run: bool
    unknown_names: list[str] = Field(
        default_factory=list, description="those that were no ledger ids, and name no event"
    )
    next: Cursor | None = Field(
        None, description="by a filter: ask for the next step with it; null at the end"
    )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def left_alone(self) -> list[Ours]:
        """The events that were not discarded, and why, in words."""
        running = left_alone(self.running, "they are running", AFTERWARDS)
        return running + left_alone(self.ended, "nothing of them is dead, held or waits")


def _what_is_discarded(here: Asks, asked: DiscardRequest) -> Plan:
    """Show which would be discarded, of a filter the next ones; no others are. Raises: `Contradictory`."""
    shown = here.ask(discard_events, asked=asked.model_copy(update={"dry_run": True}))
    if not shown.discarded:
        return Plan(shown, {"asked": asked.model_copy(update={"dry_run": True})})
    names = [*(str(each.id) for each in shown.discarded), *map(str, shown.unknown), *shown.unknown_names]
    return Plan(shown, {"asked": DiscardRequest(events=names, handler=asked.handler)})


@action(scope=Scope.REPLAY, looks=_what_is_discarded)
def discard_events(desk: Desk, asked: DiscardRequest) -> Discards:
    """Discard events that are never to run: dead, held or waiting ones. A replay undoes it.

    Up to 200 at once, all in one transaction; what is running is left alone. With `handler` only its runs are
    discarded, where an event has several. By a filter it is one step: ask again with `next` until there is none.
    """
    by_filter = asked.wanted
    if bool(asked.events) == (replace(by_filter, handler=None) != Filter()):
        raise Contradictory(NAMED_OR_CHOSEN)
    named = named_events(desk, asked.events)
    rest = None
    if not asked.events:
        wanted = replace(asked.wanted_by(desk), status=asked.status or EventStatus.DEAD)
        if wanted.status != EventStatus.DEAD:
            wanted = replace(wanted, handler=None, run_by=wanted.run_by or wanted.handler)
        rows = list(events.events(desk.connection, wanted, REPLAY_BATCH, asked.cursor))
        named.ids.extend(row.id for row in rows)
        rest = rows[-1].id if len(rows) == REPLAY_BATCH else None
    who = None if asked.dry_run else desk.who
    done = discards.discard(desk.connection, named.ids, who, asked.handler)
    named.require_any(known=len(named.ids) - len(done.unknown))
    if asked.handler and not done.discarded and (unknown := no_handler(desk, asked.handler)):
        raise NotFound(unknown)
    return Discards(**dict(done), dry_run=asked.dry_run, unknown_names=named.unknown, next=rest)


def discard_issue(desk: Desk, issue: str) -> None:
    """Discard all dead events of an issue."""
    asked: DiscardRequest | None = DiscardRequest(issue=issue)
    while asked is not None:
        rest = discard_events(desk, asked=asked).next
        asked = asked.model_copy(update={"cursor": rest}) if rest else None


def pattern_of(error: str) -> str:
    """Return the beginning of an error with `*` for what varies within one cause, and for the rest."""
    line = error.splitlines()[0][:_MAX_PATTERN_LENGTH] if error else ""
    return re.sub(r"\*[*\s]*\*", "*", _VARIES.sub("*", line) + "*")


def _pattern(death: Outcome) -> str:
    return pattern_of((death.error or "").strip()) if death.handler else ""


def _group(deaths: Sequence[Outcome], events: Mapping[int, Event]) -> DeadLetterGroup:
    """Sum up dead runs of one cause, the newest of which is the first."""
    first, *others = sorted({_pattern(death) for death in deaths})
    numbers = sorted({death.event for death in deaths}, reverse=True)
    return DeadLetterGroup(
        handler=deaths[0].handler,
        error=os.path.commonprefix([first, *others]) + "*" if others else first,  # noqa: RUF071  of texts
        example=(deaths[0].error or "").strip(),
        count=len(numbers),
        newest_events=numbers[:MAX_NAMED],
        sources=sorted({events[number].source for number in numbers}),
        newest_at=max(death.finished_at or events[death.event].received_at for death in deaths),
        issue=deaths[0].issue,
    )
