"""Events as rows of a listing; imports no more than that needs, to answer at once."""

from collections.abc import Sequence
from datetime import timedelta

from pydantic import Field, computed_field

from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.filters import EventFilter, Hinted, hint
from hookonce.receiver.desk.models import Page, Paged
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger import reasons
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events, run_outcomes
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.queries.run_outcomes import Outcome
from hookonce.receiver.ledger.rows import Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus

LOOK_FOR_LOST = timedelta(seconds=1)


class EventsQuery(EventFilter, Paged):
    """Which events, and which page of them."""


class DeadRun(ResponseModel):
    """A run that is dead, and the first 500 characters of its latest error."""

    handler: Ours = Field(description="empty where the event itself can't be read")
    error: str | None


class ListedEvent(Event):
    """One row of the ledger, and in a list of dead events what each died of."""

    dead: list[DeadRun] = Field(
        default_factory=list, description="with `status=dead`: its dead runs, and why they failed"
    )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def waits(self) -> Ours | None:
        """Why it is passed over although it may be due, in words."""
        return reasons.why(self.parked).words if self.parked else None


class EventPage(Hinted, Page[ListedEvent]):
    """Events, newest first."""


@action(scope=Scope.READ)
def list_events(desk: Desk, asked: EventsQuery) -> EventPage:
    """List events, newest first.

    Those that are `lost` are looked for among all, for a second a page: it may have none, and `next` still leads on.
    """
    rest: int | None = None
    if asked.status == EventStatus.LOST:
        found = events.newest(
            desk.connection, asked.wanted_by(desk), asked.limit, asked.cursor, LOOK_FOR_LOST
        )
        rows, rest = found.rows, found.rest
    else:
        rows = list(events.events(desk.connection, asked.wanted_by(desk), asked.limit, asked.cursor))
    page = EventPage.of(rows, asked, hint=hint(desk, asked, rows or asked.cursor))
    page.next = page.next or rest
    if asked.status == EventStatus.DEAD:
        deaths = deaths_of(desk, [row.id for row in rows])
        for row in page.data:
            died = [each for each in deaths if each.event == row.id]
            row.dead = [DeadRun(handler=each.handler or "", error=each.error) for each in died]
    return page


def deaths_of(desk: Desk, numbers: Sequence[int]) -> list[Outcome]:
    """Return the dead runs of events; their errors are content."""
    died = [each for each in run_outcomes.outcomes(desk.connection, numbers) if each.is_dead]
    return handed_out(desk, "dead letters", died)
