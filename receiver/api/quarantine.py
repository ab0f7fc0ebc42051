"""What was refused and kept whole, and another chance for it."""

from dataclasses import asdict
from datetime import UTC, datetime

from hookonce.receiver.api.models import RequestModel, ResponseModel, Time
from hookonce.receiver.api.operations import Call, operation
from hookonce.receiver.api.problem import Problem
from hookonce.receiver.api.sources import SourcePath, source_of
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.intake.reverification import Reverified, reverify
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.access.api_tokens import Scope


class Holding(ResponseModel):
    """What is in quarantine of a source, for one reason."""

    source: str
    reason: str
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
    refused: dict[str, int]
    unopened: int


@operation("GET", "/quarantine", scope=Scope.READ)
def list_quarantine(call: Call) -> Holdings:
    """Say what is in quarantine, by source and reason."""
    return Holdings(
        data=[Holding.model_validate(asdict(one)) for one in quarantine.holdings(call.connection)]
    )


@operation("POST", "/sources/{source}/reverify", scope=Scope.ADMIN, is_atomic=False)
def reverify_source(call: Call, path: SourcePath, body: ReverifyRequest) -> ReverifyResponse:
    """Check what a source rejectd and kept again, as of its arrival, and take in what is genuine.

    Safe to repeat: what was taken in is a duplicate then.
    """
    source = source_of(call, path)
    since = body.since or datetime.min.replace(tzinfo=UTC)
    done = Reverified()
    try:
        for so_far in reverify(call.settings, call.connection, source, since, call.who, dry_run=body.dry_run):
            done = so_far
    except ConfigError as error:
        raise Problem(409, error.mistakes[0], code="no_secret") from None
    return ReverifyResponse(**asdict(done), looked_at=done.looked_at, dry_run=body.dry_run)


OPERATIONS = (list_quarantine, reverify_source)
