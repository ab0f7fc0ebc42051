"""What was refused, and what came twice with two bodies."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from hookonce.providers import Reason
from hookonce.receiver.api.models import Identifier, Name, Page, Paged, RequestModel, ResponseModel, Time
from hookonce.receiver.api.operations import Call, operation
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import rejected


class RejectedFilter(RequestModel):
    """Of which source, and since when."""

    source: Name | None = None
    since: Time | None = None


class RejectedQuery(RejectedFilter, Paged):
    """Which rejected deliveries."""

    reason: Annotated[Reason, Field(strict=False)] | None = None


class ConflictsQuery(RejectedFilter, Paged):
    """Which conflicts."""


class Rejection(ResponseModel):
    """A rejected delivery, as far as it is kept; credentials are masked."""

    id: Identifier
    rejected_at: datetime
    source: str = Field(description="empty where no source has the name")
    reason: str
    detail: str
    headers: dict[str, str]
    body_prefix: str = Field(description="the first bytes as text; what is no UTF-8 is replaced")
    unreadable: str | None = Field(
        description="why they can't be decrypted here; `body_prefix` is then empty"
    )


class RejectionPage(Page[Rejection]):
    """Rejected deliveries, newest first."""


class Conflict(ResponseModel):
    """Another body under the id of an event; the ledger's event keeps the one that came first."""

    id: Identifier
    event: Identifier
    source: str
    event_id: str
    type: str
    first_at: datetime
    last_at: datetime
    deliveries: int
    bytes: int


class ConflictPage(Page[Conflict]):
    """Conflicts, newest first."""


@operation("GET", "/rejected", scope=Scope.READ)
def list_rejected(call: Call, query: RejectedQuery) -> RejectionPage:
    """List rejected deliveries, newest first. Kept are the newest only; `/stats` counts them all."""
    rows = list(
        rejected.rejected_deliveries(
            call.connection,
            call.settings.keyring,
            source=query.source,
            reason=query.reason,
            since=query.since,
            limit=query.limit,
            before=query.cursor,
        )
    )
    shown = [
        Rejection.model_validate({**row, "body_prefix": row["body_prefix"].decode(errors="replace")})
        for row in rows
    ]
    return RejectionPage(data=shown, next=rows[-1]["id"] if len(rows) == query.limit else None)


@operation("GET", "/conflicts", scope=Scope.READ)
def list_conflicts(call: Call, query: ConflictsQuery) -> ConflictPage:
    """List bodies that came under an id already taken by another body, newest first."""
    rows = list(rejected.conflicts(call.connection, query.source, query.since, query.limit, query.cursor))
    return ConflictPage(
        data=[Conflict.model_validate(row) for row in rows],
        next=rows[-1]["id"] if len(rows) == query.limit else None,
    )


OPERATIONS = (list_rejected, list_conflicts)
