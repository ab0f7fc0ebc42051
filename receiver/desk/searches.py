"""Events by what their bodies contain: no index does, so one looks into the newest as far as a bound reaches."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.filters import EventFilter, Filter, Hinted, allowed, hint
from hookonce.receiver.desk.models import Cursor, Page, Paged, Text
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events, needles, run_outcomes
from hookonce.receiver.ledger.queries.body_search import Found
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.queries.needles import Needle
from hookonce.receiver.ledger.queries.run_outcomes import Outcome

__all__ = ["Needle", "needles"]
"""Names of other modules that those who search import from here."""
_PLACE = r"^\$(\.[^.\[\]='\s\x00-\x1f]+|\['[^'\x00-\x1f]+'\]|\[[0-9]{1,6}\]|\[\*?\])*( *=[^\x00-\x1f]*)?$"
"""A place in a body, as `json_paths` reads it, and what is to stand there."""
BUDGET = timedelta(seconds=20)
"""How long one search looks."""


def _place(value: object) -> object:
    if isinstance(value, str) and not re.search(_PLACE, value):
        raise ValueError("expected a place in the body, `$.data.id`, or a value there, `$.data.id=cus_1`")
    return value


class Contents(EventFilter):
    """Which events, and what they contain: a text, or a value at a place."""

    text: Text | None = Field(default=None, description="stands somewhere in the body")
    where: Annotated[str, Field(pattern=_PLACE, max_length=255), BeforeValidator(_place)] | None = Field(
        default=None,
        description="`$.data.object.customer=cus_1`; `*` stands for any text, without `=` for any value",
    )

    @property
    def needle(self) -> Needle:
        """Return the needle to look for. Raises: ValueError."""
        return needles.read(self.where) if self.where is not None else Needle(self.text)


class SearchQuery(Contents, Paged):
    """Which events, and what their bodies contain: a text, or a value at a place."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [one], "properties": {one: {"type": "string"}, other: {"type": "null"}}}
                for one, other in (("text", "where"), ("where", "text"))
            ]
        }
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.where is None):
            raise ValueError("expected `text` (`--body`) or `where`, one of both")
        self.needle  # noqa: B018  it raises what is wrong with the place
        return self


class FoundEvents(Hinted, Page[Event]):
    """Events whose body holds it, newest first; `next` goes on where looking has ended, null if it looked into all."""

    back_to: datetime | None = Field(
        description="when the oldest came that was looked at, if others are older"
    )
    looked_into: int
    closed: int = Field(description="bodies that can't be decrypted here")
    large: int = Field(description="bodies that were too large to be looked into")


@action(scope=Scope.READ, is_atomic=False)
def search_bodies(desk: Desk, asked: SearchQuery) -> FoundEvents:
    """Find events by what their bodies contain, the newest first, for 20 seconds or 50,000 events at most.

    Needs the scope `bodies` besides. Each page that opens sealed bodies is audited, without what was looked for.
    """
    found = deliveries.search(
        desk, asked.wanted_by(desk), asked.needle, limit=asked.limit, before=asked.cursor, budget=BUDGET
    )
    rest: Cursor | None = found.rest
    return FoundEvents(
        data=found.rows,
        next=rest,
        back_to=found.back_to,
        looked_into=found.looked_into,
        closed=found.closed,
        large=found.large,
        hint=hint(desk, asked, found.looked_into or asked.cursor),
    )


@dataclass(slots=True)
class Listing:
    """The events of one page; `next` is the `before` of the following one, `rest` and `back_to` where looking ended."""

    rows: Sequence[Event]
    next: int | None = None
    rest: int | None = None
    back_to: datetime | None = None
    searched: Found | None = None
    has_newer: bool = False
    outcomes: dict[int, Outcome] = field(default_factory=dict)


def look(  # noqa: PLR0913  where a page begins
    desk: Desk,
    wanted: Filter,
    size: int,
    budget: timedelta,
    *,
    before: int | None = None,
    after: int | None = None,
) -> Listing:
    """Return a page of events, those below `before` or above `after`, as far as the budget reaches."""
    allowed(desk, wanted)
    if after:
        rows = events.oldest_after(desk.connection, wanted, size + 1, after, budget)
        listing = Listing(rows[-size:], has_newer=len(rows) > size)
        listing.next = listing.rows[-1].id if listing.rows else after + 1
    else:
        page = events.newest(desk.connection, wanted, size + 1, before, budget)
        listing = Listing(
            page.rows[:size], rest=page.rest, back_to=page.back_to, has_newer=before is not None
        )
        listing.next = page.rows[size - 1].id if len(page.rows) > size else None
    listing.outcomes = _outcomes_of(desk, listing.rows)
    return listing


def _outcomes_of(desk: Desk, rows: Sequence[Event]) -> dict[int, Outcome]:
    worst: dict[int, Outcome] = {}
    for each in run_outcomes.outcomes(desk.connection, [row.id for row in rows]):
        if each.handler:
            worst.setdefault(each.event, each)
    return {each.event: each for each in handed_out(desk, "errors of events", [*worst.values()])}


def look_into(  # noqa: PLR0913  the same
    desk: Desk, wanted: Filter, needle: Needle, size: int, budget: timedelta, *, before: int | None = None
) -> Listing:
    """Return a page of the events whose bodies contain something, as far as the budget reaches."""
    found = deliveries.search(desk, allowed(desk, wanted), needle, limit=size, before=before, budget=budget)
    is_full = len(found.rows) == size
    return Listing(
        found.rows,
        next=found.rest if is_full else None,
        rest=None if is_full else found.rest,
        back_to=found.back_to,
        searched=found,
        outcomes=_outcomes_of(desk, found.rows),
    )


def neighbours(desk: Desk, wanted: Filter, number: int, budget: timedelta) -> dict[str, int | None]:
    """Return the events before and after one in a view, as far as they are near."""
    allowed(desk, wanted)
    older = events.newest(desk.connection, wanted, 1, number, budget).rows
    newer = events.oldest_after(desk.connection, wanted, 1, number, budget)
    return {"older": older[0].id if older else None, "newer": newer[0].id if newer else None}
