"""What was refused, and what came twice with two bodies."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from hookonce.providers import Reason
from hookonce.receiver.desk.models import (
    Identifier,
    Name,
    Ours,
    Page,
    Paged,
    RequestModel,
    ResponseModel,
    Time,
)
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import rejected
from hookonce.receiver.vocabulary import REFUSALS


class RejectedFilter(RequestModel):
    """Of which source, and of which time."""

    source: Name | None = Field(None, description="only of this source")
    since: Time | None = Field(None, description="only received then or later: 90s, 15m, 2h, 7d, a time")
    until: Time | None = Field(None, description="only received before that")


class RejectedQuery(RejectedFilter, Paged):
    """Which rejected deliveries."""

    reason: Annotated[Reason, Field(strict=False)] | None = Field(None, description="only for this reason")


class ConflictsQuery(RejectedFilter, Paged):
    """Which conflicts."""


class Rejection(ResponseModel):
    """A rejected delivery, as far as it is kept; credentials are masked."""

    id: Identifier
    rejected_at: datetime
    source: Ours = Field(description="empty where no source has the name")
    reason: Ours
    do: Ours | None = Field(description="what to do about that reason")
    detail: str
    headers: dict[str, str]
    body_prefix: str = Field(description="the first bytes as text; what is no UTF-8 is replaced")
    unreadable: Ours | None = Field(
        description="why they can't be decrypted here; `body_prefix` is then empty"
    )


class RejectionPage(Page[Rejection]):
    """Rejected deliveries, newest first."""


class Conflict(ResponseModel):
    """Another body under the id of an event; the ledger's event keeps the one that came first."""

    id: Identifier
    event: Identifier
    source: Ours
    event_id: str
    type: str
    first_at: datetime
    last_at: datetime
    deliveries: int
    bytes: int


class ConflictPage(Page[Conflict]):
    """Conflicts, newest first."""


@action(scope=Scope.READ)
def list_rejected(desk: Desk, asked: RejectedQuery) -> RejectionPage:
    """List rejected deliveries, newest first. Kept are the newest only; `/stats` counts them all."""
    rows = list(
        rejected.rejected_deliveries(
            desk.connection,
            desk.settings.keyring,
            source=asked.source,
            reason=asked.reason,
            since=asked.since,
            until=asked.until,
            limit=asked.limit,
            before=asked.cursor,
        )
    )
    shown = [
        Rejection.model_validate(
            {**row, "do": _do(row["reason"]), "body_prefix": row["body_prefix"].decode(errors="replace")}
        )
        for row in rows
    ]
    return RejectionPage(data=shown, next=rows[-1]["id"] if len(rows) == asked.limit else None)


@action(scope=Scope.READ)
def list_conflicts(desk: Desk, asked: ConflictsQuery) -> ConflictPage:
    """List bodies that came under an id already taken by another body, newest first."""
    rows = list(
        rejected.conflicts(desk.connection, asked.source, asked.since, asked.limit, asked.cursor, asked.until)
    )
    return ConflictPage(
        data=[Conflict.model_validate(row) for row in rows],
        next=rows[-1]["id"] if len(rows) == asked.limit else None,
    )


def _do(reason: str) -> str | None:
    return REFUSALS[reason].do if reason in REFUSALS else None
