"""What was refused and kept whole, and another chance for it."""

from dataclasses import asdict
from datetime import UTC, datetime

from receiver.api.fields import Asked, Moment, Shown
from receiver.api.operations import Call, operation
from receiver.api.problem import Problem
from receiver.api.senders import SourcePath, source_of
from receiver.ledger import quarantine
from receiver.ledger.tokens import Scope
from receiver.quarantine import Reverified, reverify
from receiver.settings import ConfigError


class Holding(Shown):
    """What is in quarantine of a source, for one reason."""

    source: str
    reason: str
    count: int
    bytes: int
    oldest: datetime
    newest: datetime


class Holdings(Shown):
    """What is in quarantine, by source and reason."""

    data: list[Holding]


class SecondLook(Asked):
    """Which deliveries of the source to check again, and whether only to say what would be taken in."""

    since: Moment | None = None
    dry_run: bool = False


class CheckedAgain(Shown):
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
def reverify_source(call: Call, path: SourcePath, body: SecondLook) -> CheckedAgain:
    """Check what a source refused and kept again, as of its arrival, and take in what is genuine.

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
    return CheckedAgain(**asdict(done), looked_at=done.looked_at, dry_run=body.dry_run)


OPERATIONS = (list_quarantine, reverify_source)
