"""Numbers, retention, the dedup window, and who is asking."""

from datetime import datetime

from pydantic import Field

from hookonce.receiver.desk.models import RequestModel, ResponseModel
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import backlog, totals
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.work_queue import WorkQueue

MAX_TRIES = 10
"""How often a day in use is tried."""


class StatusCount(ResponseModel):
    """Events of a source in a status."""

    source: str
    status: str
    count: int


class RejectionCount(ResponseModel):
    """Deliveries rejected since ever; `source` is empty where none has the name."""

    source: str
    reason: str
    count: int


class Stats(ResponseModel):
    """The numbers of the inbox."""

    events: list[StatusCount]
    rejected: list[RejectionCount]
    dead: int
    held: int
    conflicts: int
    oldest_due_seconds: float
    notifications_pending: int | None = Field(description="null while Redis does not answer")


class PruneRequest(RequestModel):
    """Whether to delete, or only to say what would go."""

    dry_run: bool = False


class Pruned(ResponseModel):
    """What went, or would go: ledger rows, rejected deliveries, lines of the audit, days of bodies."""

    dry_run: bool
    events: int
    rejected: int
    audit: int
    days: list[str]
    needed: list[str] = Field(description="stay: an event of that day is yet to be handled")
    busy: list[str] = Field(description="could not be dropped now; ask again")


class Forgotten(ResponseModel):
    """How many event ids the dedup window forgot."""

    forgotten: int | None = Field(
        description="null while Redis does not answer: they stay there until they run out, and are not believed"
    )


class TokenModel(ResponseModel):
    """The token of this request."""

    name: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None


@action(scope=Scope.READ)
def get_stats(desk: Desk) -> Stats:
    """Count events by source and status, and rejected deliveries by reason; say what waits."""
    events = totals.events_by_status(desk.connection)
    return Stats(
        events=[StatusCount(source=source, status=status, count=count) for source, status, count in events],
        rejected=[
            RejectionCount(source=source, reason=reason, count=count)
            for source, reason, count in totals.rejections(desk.connection)
        ],
        dead=sum(count for _, status, count in events if status == EventStatus.DEAD),
        held=sum(count for _, status, count in events if status == EventStatus.HELD),
        conflicts=totals.conflicts(desk.connection),
        oldest_due_seconds=round(backlog.oldest_due(desk.connection), 1),
        notifications_pending=_pending(desk.settings.redis_url),
    )


@action(scope=Scope.ADMIN, audits="prune", is_atomic=False)
def prune(desk: Desk, asked: PruneRequest) -> Pruned:
    """Let go of what has outlived its horizon, in small steps; safe to repeat. It answers when all is done."""
    pruning = RetentionPass(Retention.of(desk.settings), dry_run=asked.dry_run, patience=MAX_TRIES)
    try:
        for _ in pruning.steps(desk.connection):
            pass
    finally:
        pruning.audit(desk.connection, desk.who)
    gone = pruning.done
    return Pruned(
        dry_run=asked.dry_run,
        events=gone.events,
        rejected=gone.rejected,
        audit=gone.audit,
        days=gone.days,
        needed=gone.needed,
        busy=gone.busy,
    )


@action(scope=Scope.ADMIN, is_atomic=False)
def forget_window(desk: Desk) -> Forgotten:
    """Forget every event id in Redis, after a restore of the database; duplicates are then found by the ledger."""
    connections.renew_window_key(desk.connection)  # it counts even where Redis does not answer
    try:
        with connect(desk.settings.redis_url) as client:
            return Forgotten(forgotten=DedupWindow(client, CircuitBreaker()).forget())
    except (RedisUnavailable, ValueError):  # the last: there is no address
        return Forgotten(forgotten=None)


@action(scope=None)
def get_token(desk: Desk) -> TokenModel:
    """Show the name and the scopes of the token that is asking."""
    token = desk.token
    if token is None:
        raise NotFound("no token came with this: it is asked of the ledger itself")
    return TokenModel(
        name=token.name,
        scopes=[Scope(scope) for scope in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
    )


def _pending(url: str) -> int | None:
    try:
        with connect(url) as client:
            return WorkQueue(client).pending()
    except (RedisUnavailable, ValueError):
        return None


OPERATIONS = (get_stats, prune, forget_window, get_token)
