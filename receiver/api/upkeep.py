"""Numbers, retention, the dedup window, and who is asking."""

from datetime import datetime

import redis
from pydantic import Field

from receiver.api.fields import Asked, Shown
from receiver.api.operations import Call, operation
from receiver.api.problem import Problem
from receiver.breaker import Breaker
from receiver.handoff import Bell
from receiver.ledger import figures
from receiver.ledger.desk_prune import Horizons, Pruning
from receiver.ledger.tokens import Scope
from receiver.window import Window, connect

TRIES = 10
"""How often a day in use is tried."""


class StatusCount(Shown):
    """Events of a source in a status."""

    source: str
    status: str
    count: int


class RejectionCount(Shown):
    """Deliveries refused since ever; `source` is empty where none has the name."""

    source: str
    reason: str
    count: int


class Stats(Shown):
    """The numbers of the inbox."""

    events: list[StatusCount]
    rejected: list[RejectionCount]
    dead: int
    held: int
    conflicts: int
    oldest_due_seconds: float
    rings_waiting: int | None = Field(description="null while Redis does not answer")


class PruneWanted(Asked):
    """Whether to delete, or only to say what would go."""

    dry_run: bool = False


class Pruned(Shown):
    """What went, or would go: ledger rows, refused deliveries, lines of the audit, days of bodies."""

    dry_run: bool
    events: int
    rejected: int
    audit: int
    days: list[str]
    needed: list[str] = Field(description="stay: an event of that day is yet to be handled")
    busy: list[str] = Field(description="could not be dropped now; ask again")


class Forgotten(Shown):
    """How many event ids the dedup window forgot."""

    forgotten: int


class TokenShown(Shown):
    """The token of this request."""

    name: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None


@operation("GET", "/stats", scope=Scope.READ)
def get_stats(call: Call) -> Stats:
    """Count events by source and status, and refused deliveries by reason; say what waits."""
    events = figures.events_by_status(call.connection)
    return Stats(
        events=[StatusCount(source=source, status=status, count=count) for source, status, count in events],
        rejected=[
            RejectionCount(source=source, reason=reason, count=count)
            for source, reason, count in figures.rejections(call.connection)
        ],
        dead=sum(count for _, status, count in events if status == "dead"),
        held=sum(count for _, status, count in events if status == "held"),
        conflicts=figures.conflicts(call.connection),
        oldest_due_seconds=round(figures.oldest_due(call.connection), 1),
        rings_waiting=_rings(call.settings.redis_url),
    )


@operation("POST", "/prune", scope=Scope.ADMIN, is_atomic=False)
def prune(call: Call, body: PruneWanted) -> Pruned:
    """Let go of what has outlived its horizon, in small steps; safe to repeat. It answers when all is done."""
    pruning = Pruning(Horizons.of(call.settings), dry_run=body.dry_run, patience=TRIES)
    try:
        for _ in pruning.steps(call.connection):
            pass
    finally:
        pruning.audit(call.connection, call.who)
    gone = pruning.done
    return Pruned(
        dry_run=body.dry_run,
        events=gone.events,
        rejected=gone.rejected,
        audit=gone.audit,
        days=gone.days,
        needed=gone.needed,
        busy=gone.busy,
    )


@operation("POST", "/window/forget", scope=Scope.ADMIN, is_atomic=False)
def forget_window(call: Call) -> Forgotten:
    """Forget every event id in Redis, after a restore of the database; duplicates are then found by the ledger."""
    try:
        with connect(call.settings.redis_url) as client:
            return Forgotten(forgotten=Window(client, Breaker()).forget())
    except (redis.RedisError, OSError, ValueError) as error:  # the last: there is no address
        raise Problem(
            503, f"Redis does not answer ({type(error).__name__})", code="window_unavailable"
        ) from None


@operation("GET", "/token", scope=None)
def get_token(call: Call) -> TokenShown:
    """Show the name and the scopes of the token that is asking."""
    token = call.token
    return TokenShown(
        name=token.name,
        scopes=[Scope(scope) for scope in token.scopes],
        created_at=token.created_at,
        expires_at=token.expires_at,
    )


def _rings(url: str) -> int | None:
    try:
        with connect(url) as client:
            return Bell(client).waiting()
    except (redis.RedisError, OSError, ValueError):
        return None


OPERATIONS = (get_stats, prune, forget_window, get_token)
