"""The numbers of the inbox at a glance, and its workers; imports no more than these need, to answer at once."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger import alerts, pauses
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.pauses import Pause
from hookonce.receiver.ledger.reasons import PAUSES
from hookonce.receiver.ledger.rows import Ours, ResponseModel
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.runs.breakers import Breaker
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import (
    activity,
    backlog,
    counters,
    event_counts,
    totals,
    worker_slots,
)
from hookonce.receiver.ledger.stats.activity import Count
from hookonce.receiver.ledger.stats.counters import BatchFigures
from hookonce.receiver.ledger.stats.totals import RejectionCount, SecretUse, StatusCount
from hookonce.receiver.ledger.stats.worker_slots import LongTransaction, WorkerSlots
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.pending import pending


def _kind(value: str) -> str:
    if value not in PAUSES:
        raise ValueError(f"expected one of {', '.join(PAUSES)}")
    return value


Kind = Annotated[
    Ours, AfterValidator(_kind), WithJsonSchema({"type": "string", "enum": list(PAUSES), "title": "Kind"})
]


class Workers(ResponseModel):
    """Workers that report slots; one that runs one at a time does not."""

    data: list[WorkerSlots]
    suspects: dict[Ours, int] = Field(
        description="runs that may have been under way when their worker died, by handler; each is run by itself, and "
        f"{worker_slots.MAX_SUSPECTS} of all handlers are counted at most"
    )
    long_transactions: list[LongTransaction]


@action(scope=Scope.READ)
def list_workers(desk: Desk) -> Workers:
    """List workers and what each is running, suspect runs, and transactions that wait."""
    connection = desk.connection
    return Workers(
        data=worker_slots.workers(connection),
        suspects=worker_slots.suspects(connection),
        long_transactions=worker_slots.long_transactions(connection),
    )


class Stats(ResponseModel):
    """The numbers of the inbox, as of one moment."""

    account: dict[Ours, int] = Field(
        description="events that were `accepted`, by status, in numbers that add up; `replayed` is counted apart"
    )
    events: list[StatusCount]
    due: int = Field(description=f"events that a worker may take now, {backlog.MAX_DUE} at most")
    waiting: int
    dead: int
    held: int
    oldest_due_seconds: float
    conflicts: int = Field(description="other bodies under ids that senders had used")
    keys_reused: int = Field(description="other commands under keys that clients had used")
    rejected: list[RejectionCount]
    secrets: list[SecretUse]
    alerts: list[Alert]
    workers: list[WorkerSlots]
    suspects: dict[Ours, int]
    long_transactions: list[LongTransaction]
    waiting_for_limit: dict[Ours, int]
    rate_delay_seconds: dict[Ours, float]
    breakers: list[Breaker]
    batches: list[BatchFigures]
    paused: list[Pause]
    notifications_pending: int | None = Field(description="null while Redis does not answer")


@action(scope=Scope.READ)
def get_stats(desk: Desk) -> Stats:
    """Count events by source and status, and rejected deliveries by reason; say what waits."""
    with desk.connection.transaction():  # so that what adds up in the ledger adds up here
        desk.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return Stats(**_numbers(desk), notifications_pending=_pending(desk.settings.redis_url))


def status_counts(desk: Desk) -> list[StatusCount]:
    """Count the events of each source by status."""
    return totals.event_sums(desk.connection)


def rejection_counts(desk: Desk) -> list[RejectionCount]:
    """Count rejected deliveries by source and reason, of all time."""
    return totals.rejections(desk.connection)


def traffic(desk: Desk, since: datetime, bucket: timedelta) -> list[Count]:
    """Count what came and what became of it, by source and bucket of time."""
    return activity.rates(desk.connection, since, bucket)


def _numbers(desk: Desk) -> dict[str, Any]:
    connection = desk.connection
    events = totals.event_sums(connection)
    gone = event_counts.gone(connection).values()
    by_status = Counter[str]()
    for each in events:
        by_status[each.status] += each.count
    account = {**by_status, "pruned": sum(g.pruned for g in gone)}
    replayed = sum(g.replayed.total() for g in gone)
    return {
        "account": {"accepted": sum(account.values()), **account, "replayed": replayed},
        "events": events,
        "due": backlog.due(connection),
        "waiting": by_status[EventStatus.WAITING],
        "dead": by_status[EventStatus.DEAD],
        "held": by_status[EventStatus.HELD],
        "oldest_due_seconds": round(backlog.oldest_due(connection), 1),
        **dict(zip(("conflicts", "keys_reused"), totals.conflicts(connection), strict=True)),
        "rejected": totals.rejections(connection),
        "secrets": totals.secrets(connection),
        "alerts": alerts.open_alerts(connection),
        "workers": worker_slots.workers(connection),
        "suspects": worker_slots.suspects(connection),
        "long_transactions": worker_slots.long_transactions(connection),
        "waiting_for_limit": limit_gate.waiting(connection),
        "rate_delay_seconds": {
            handler: round(delay.total_seconds(), 1)
            for handler, delay in limit_gate.delays(connection).items()
        },
        "breakers": breakers.breakers(connection),
        "batches": batches(desk),
        "paused": pauses.paused(connection),
    }


recount_events = event_counts.recount
"""Counts the whole ledger afresh, as after changes by hand."""


def _pending(url: str) -> int | None:
    try:
        with connect(url) as client:
            return pending(client)
    except (RedisUnavailable, ValueError):
        return None


def batches(desk: Desk) -> list[BatchFigures]:
    """Return what became of the batches of handlers."""
    return handed_out(desk, "batches", counters.batch_figures(desk.connection))
