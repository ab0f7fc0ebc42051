"""What was refused and kept whole, and another chance for it."""

from dataclasses import asdict
from datetime import UTC, datetime

from pydantic import Field

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.desk.models import Ours, RequestModel, ResponseModel, Time
from hookonce.receiver.desk.refusals import NotConfigured
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.desk.sources import SourcePath, source_of
from hookonce.receiver.intake.reverification import Reverified, reverify
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.access.api_tokens import Scope


class Holding(ResponseModel):
    """What is in quarantine of a source, for one reason."""

    source: Ours
    reason: Ours
    count: int
    bytes: int
    oldest: datetime
    newest: datetime


class Holdings(ResponseModel):
    """What is in quarantine, by source and reason."""

    data: list[Holding]


class ReverifyRequest(RequestModel):
    """Which deliveries of the source to check again, and whether only to say what would be taken in."""

    since: Time | None = None
    dry_run: bool = False


class ReverifyResponse(ResponseModel):
    """What became of them; `refused`, by reason, and `unopened` (sealed with a missing key) stay in quarantine."""

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
def list_quarantine(desk: Desk) -> Holdings:
    """Say what is in quarantine, by source and reason."""
    return Holdings(
        data=[Holding.model_validate(asdict(one)) for one in quarantine.holdings(desk.connection)]
    )


@action(scope=Scope.ADMIN, audits="reverify", is_atomic=False)
def reverify_source(desk: Desk, which: SourcePath, asked: ReverifyRequest) -> ReverifyResponse:
    """Check what a source rejected and kept again, as of its arrival, and take in what is genuine.

    Safe to repeat: what was taken in is a duplicate then.
    """
    source = source_of(desk, which)
    since = asked.since or datetime.min.replace(tzinfo=UTC)
    done = Reverified()
    try:
        for so_far in reverify(
            desk.settings, desk.connection, source, since, desk.who, dry_run=asked.dry_run
        ):
            done = so_far
    except ConfigError as error:
        raise NotConfigured(error.mistakes[0], code="no_secret") from None
    return ReverifyResponse(
        **asdict(done), looked_at=done.looked_at, dry_run=asked.dry_run, keeps=source.quarantine is not None
    )
