"""Rejected deliveries, the quarantine and its verification, and conflicts."""

import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from hookonce.providers import Reason
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.filters import HintedPage, hint
from hookonce.receiver.desk.models import IdInPath, Listed, Name, Paged, RequestModel, Time
from hookonce.receiver.desk.refusals import NotConfigured, NotFound
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.desk.sources import SourcePath, source_of
from hookonce.receiver.intake.explain.checks import Check
from hookonce.receiver.intake.reverification import Reverified, reverify
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.quarantine import Holding
from hookonce.receiver.ledger.queries import rejected
from hookonce.receiver.ledger.rejected import Rejection
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel


class RejectedFilter(RequestModel):
    """A source and a span of time."""

    source: Name | None = Field(None, description="only of this source")
    since: Time | None = Field(None, description="only received then or later: 90s, 15m, 2h, 7d, a time")
    until: Time | None = Field(None, description="only received before that")


class RejectedQuery(RejectedFilter, Paged):
    """Which rejected deliveries."""

    reason: Annotated[Reason, Field(strict=False)] | None = Field(None, description="only for this reason")


class ConflictsQuery(RejectedFilter, Paged):
    """Which conflicts."""


class RejectionPath(RequestModel):
    """A rejected delivery by its number, as the list has it."""

    rejection: IdInPath


class ExplanationModel(ResponseModel):
    """Why a delivery was rejected; without a `reason` it is genuine with the secrets that are configured now."""

    id: Identifier
    source: Ours
    reason: Ours | None
    detail: str
    slot: int | None = Field(description="which secret signed it, from 1")
    cause: str
    advice: Ours
    checks: list[Check]


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


@action(scope=Scope.READ)
def list_rejected(desk: Desk, asked: RejectedQuery) -> HintedPage[Rejection]:
    """List rejected deliveries, newest first. Kept are the newest only; `/stats` counts them all."""
    rows = deliveries.rejected_deliveries(desk, **_wanted(asked), reason=asked.reason)
    found = rows or asked.cursor
    return HintedPage[Rejection].of(rows, asked, hint=hint(desk, asked, found))


@action(scope=Scope.READ)
def get_rejected(desk: Desk, which: RejectionPath) -> Rejection:
    """Show a rejected delivery, as far as it is kept."""
    row = deliveries.rejected_delivery(desk, which.rejection)
    if row is None:
        raise _not_kept(which)
    return row


@action(scope=Scope.READ)
def explain_rejected(desk: Desk, which: RejectionPath) -> ExplanationModel:
    """Explain why a delivery was rejected: each check, what it expects, what was found, and the likely cause.

    A delivery that is kept whole, in quarantine or because its body is short, is verified again as of its arrival, with
    the secrets that are configured here. Of others the headers are looked at.
    """
    explained = deliveries.explained_rejection(desk, which.rejection)
    if explained is None:
        raise _not_kept(which)
    row, found = explained
    advice = found.advice or (deliveries.advice(row.reason) or "" if found.reason else "")
    return ExplanationModel(
        id=row.id,
        source=row.source,
        reason=found.reason,
        detail=found.detail,
        slot=found.slot,
        cause=found.cause,
        advice=advice,
        checks=found.checks,
    )


def _not_kept(which: RejectionPath) -> NotFound:
    return NotFound(
        f"rejected delivery {which.rejection} is not kept; `hookonce rejected list` shows those that are"
    )


@action(scope=Scope.READ)
def list_conflicts(desk: Desk, asked: ConflictsQuery) -> HintedPage[Conflict]:
    """List bodies that came under an id already taken by another body, newest first."""
    rows = rejected.conflicts(desk.connection, **_wanted(asked))
    found = rows or asked.cursor
    return HintedPage[Conflict].of(rows, asked, hint=hint(desk, asked, found))


def _wanted(asked: RejectedQuery | ConflictsQuery) -> dict[str, Any]:
    limits = {"limit": asked.limit, "before": asked.cursor}
    return {"source": asked.source, "since": asked.since, "until": asked.until, **limits}


class ReverifyRequest(RequestModel):
    """Which deliveries of the source to check again, and whether only to say what would be taken in."""

    since: Time | None = None
    dry_run: bool = False


class ReverifyResponse(ResponseModel):
    """Outcomes of a verification; `refused`, by reason, and `unopened` (the key is missing) stay in quarantine."""

    dry_run: bool
    looked_at: int
    genuine: int
    accepted: int
    duplicates: int
    empty: int
    refused: dict[Ours, int]
    unopened: int
    keeps: bool = Field(description="whether the source keeps what it refuses")


@action(scope=Scope.READ)
def list_quarantine(desk: Desk) -> Listed[Holding]:
    """Say what is in quarantine, by source and reason."""
    return Listed[Holding](data=quarantine.holdings(desk.connection))


@action(scope=Scope.ADMIN, is_atomic=False)
def reverify_source(desk: Desk, which: SourcePath, asked: ReverifyRequest) -> ReverifyResponse:
    """Check what a source rejected and kept again, as of its arrival, and take in what is genuine.

    Safe to repeat: what was taken in is a duplicate then.
    """
    return reverified(desk, which, asked, timedelta.max)


def reverified(desk: Desk, which: SourcePath, asked: ReverifyRequest, budget: timedelta) -> ReverifyResponse:
    """Check what a source rejected and kept again, for about so long; what is left is for the next time."""
    source = source_of(desk, which)
    since = asked.since or datetime.min.replace(tzinfo=UTC)
    done, began = Reverified(), time.monotonic()
    try:
        for so_far in reverify(
            desk.settings, desk.connection, source, since, desk.who, dry_run=asked.dry_run
        ):
            done = so_far
            if time.monotonic() - began > budget.total_seconds():
                break
    except ConfigError as error:
        raise NotConfigured(error.mistakes[0], code="no_secret") from None
    return ReverifyResponse(
        **asdict(done), looked_at=done.looked_at, dry_run=asked.dry_run, keeps=source.quarantine is not None
    )
