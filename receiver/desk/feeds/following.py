"""Events as they come, and what becomes of them: what is new, or has another status than a client was shown."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field

from hookonce.receiver.desk.filters import EventFilter, Status
from hookonce.receiver.desk.models import IdInBody, RequestModel
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import events, tail
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.rows import ResponseModel
from hookonce.receiver.ledger.states import OPEN

MAX_SEEN = 1000
"""Events whose status is followed, the newest; older ones are let go of. So many fit into a request of the API."""
MAX_LAST = 1000
SETTLED_AFTER = timedelta(seconds=10)
"""Age at which no event with a smaller id turns up any more: ids are given out before they are committed."""


class SeenStatus(RequestModel):
    """An event, and the status that it was shown with."""

    event: IdInBody
    status: Status


class FollowRequest(EventFilter):
    """Which events; `status` is the one that they take on. `after` and `seen` are as the answer before has them."""

    last: Annotated[int, Field(ge=0, le=MAX_LAST)] = Field(
        0, description="without `after`: begin with the newest so many"
    )
    after: Annotated[int, Field(ge=0)] | None = Field(None, description="the ledger id to go on behind")
    seen: Annotated[list[SeenStatus], Field(max_length=MAX_SEEN)] = Field(
        default_factory=list, description="events that may have another status by now"
    )


class Followed(ResponseModel):
    """Events that have come or have another status, by ledger id, and what to ask with the next time."""

    data: list[Event]
    after: int
    seen: list[SeenStatus]


@action(scope=Scope.READ)
def follow_events(desk: Desk, asked: FollowRequest) -> Followed:
    """Say which events have come and which have another status than before; ask again with `after` and `seen`."""
    wanted, connection = asked.wanted_by(desk), desk.connection
    if asked.after is None:
        after = tail.newest(connection)
        known = new = list(events.events(connection, wanted, asked.last))[::-1] if asked.last else []
    else:
        after, seen = asked.after, {each.event: each.status for each in asked.seen}
        known = tail.of_now(connection, list(seen)) if seen else []
        known += tail.behind(connection, wanted, after, list(seen))
        new = [row for row in known if seen.get(row.id) != row.status and wanted.status in {None, row.status}]
    settled = datetime.now(UTC) - SETTLED_AFTER
    kept = sorted(
        (row for row in known if row.received_at > settled or row.status in OPEN), key=lambda row: row.id
    )
    passed = [row.id for row in known if row.received_at <= settled] + [row.id for row in kept[:-MAX_SEEN]]
    return Followed(
        data=sorted(new, key=lambda row: row.id),
        after=max([after, *passed]),
        seen=[SeenStatus(event=row.id, status=row.status) for row in kept[-MAX_SEEN:]],
    )
