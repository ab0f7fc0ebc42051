"""The numbers of the inbox at a glance, and its workers; imports no more than these need, to answer at once."""

from collections import Counter
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from hookonce.receiver.desk.models import Identifier, Ours, ResponseModel, shown
from hookonce.receiver.desk.registry import Desk, action, is_handed_out
from hookonce.receiver.ledger import alerts, pauses
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.reasons import PAUSES
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.ledger.stats import backlog, batch_figures, event_accounts, totals, worker_slots
from hookonce.receiver.privacy.withheld import brief
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.pending import pending


def _kind(value: str) -> str:
    if value not in PAUSES:
        raise ValueError(f"expected one of {', '.join(PAUSES)}")
    return value


Kind = Annotated[
    Ours, AfterValidator(_kind), WithJsonSchema({"type": "string", "enum": list(PAUSES), "title": "Kind"})
]


class Worker(ResponseModel):
    """A worker process with several slots, as it last reported."""

    name: Ours = Field(description="host and process id")
    slots: int = Field(description="runs it may have under way at once")
    busy: int
    lost: int = Field(description="slots whose handler no time limit could end")
    seen_at: datetime


class Suspects(ResponseModel):
    """Runs that may have been under way when their worker died, by handler; each is run by itself."""

    handler: Ours
    runs: int = Field(description=f"{worker_slots.MAX_SUSPECTS} of all handlers at most")


class LongTransaction(ResponseModel):
    """An attempt that wrote and waits for something else in its transaction, which holds vacuum back."""

    handler: Ours
    event: Identifier
    seconds: float


class Workers(ResponseModel):
    """Workers that report slots; one that runs one at a time does not."""

    data: list[Worker]
    suspects: list[Suspects]
    long_transactions: list[LongTransaction]


@action(scope=Scope.READ)
def list_workers(desk: Desk) -> Workers:
    """List the workers that run many at once, and what holds others up."""
    connection = desk.connection
    return Workers(
        data=shown(Worker, worker_slots.workers(connection)),
        suspects=[
            Suspects(handler=handler, runs=count)
            for handler, count in worker_slots.suspects(connection).items()
        ],
        long_transactions=long_transactions(desk),
    )


def long_transactions(desk: Desk) -> list[LongTransaction]:
    """Return the attempts that wrote and wait, the longest first."""
    return [
        LongTransaction(
            handler=each.handler, event=each.event, seconds=round(each.open_for.total_seconds(), 1)
        )
        for each in worker_slots.long_transactions(desk.connection)
    ]


class Alert(ResponseModel):
    """One trouble; `subject` is a source, a handler, an issue or a server, empty for the inbox as a whole."""

    id: Identifier
    kind: Ours
    subject: Ours
    detail: str
    since: datetime
    ended_at: datetime | None


class Pause(ResponseModel):
    """A pause: deliveries are taken in all the same, runs wait."""

    kind: Kind
    name: Ours
    by: Literal["person", "breaker"] = Field(
        description="`breaker`: the handler's own, which ends it when a try succeeds; pause it, and the pause is yours"
    )
    since: datetime


class HandlerBreaker(ResponseModel):
    """Failures in a row by one error; open: the handler is paused for it, and tried from time to time."""

    failures: int
    error: str
    is_open: bool
    opened_at: datetime | None = Field(description="null while it is closed, as the rest")
    try_at: datetime | None = Field(description="when the next event is tried")
    waiting: int = Field(description=f"events that wait for it; {breakers.MAX_WAITING} at most")
    oldest_waiting_seconds: float | None = Field(
        description="how long ago the oldest of them came; null if none waits"
    )


class HandlerBatches(ResponseModel):
    """What became of the batches of a handler that takes many events at once."""

    batches: int = Field(description="that succeeded")
    events: int = Field(description="in these")
    halvings: int = Field(description="of batches that failed, or whose worker died")
    size: int | None = Field(
        description="of the smallest part that is to be tried by itself; null if there is none"
    )
    waiting: int = Field(description="parts that are to be tried by themselves")
    error: str | None = Field(description="by which they failed")


class StatusCount(ResponseModel):
    """Events of a source in a status."""

    source: Ours
    status: Ours
    count: int


class RejectionCount(ResponseModel):
    """Deliveries rejected, all time; `source` is empty where none has the name."""

    source: Ours
    reason: Ours
    count: int


class SecretUse(ResponseModel):
    """How often a secret verified a delivery, by its place in the configuration, from 1."""

    source: Ours
    slot: int
    count: int
    last_used: datetime | None


class SlotUse(ResponseModel):
    """A worker process with several slots, as it last reported."""

    name: Ours
    slots: int
    busy: int
    lost: int
    seconds_ago: int


class BatchFigures(HandlerBatches):
    """What became of the batches of a handler."""

    handler: Ours


class BreakerState(HandlerBreaker):
    """Failures in a row of a handler."""

    handler: Ours


class Stats(ResponseModel):
    """The numbers of the inbox, as of one moment."""

    account: dict[Ours, int] = Field(
        description="what became of all that was `accepted`, in numbers that add up; `replayed` is said apart"
    )
    events: list[StatusCount]
    dead: int
    held: int
    oldest_due_seconds: float
    conflicts: int = Field(description="other bodies under ids that senders had used")
    keys_reused: int = Field(description="other commands under keys that clients had used")
    rejected: list[RejectionCount]
    secrets: list[SecretUse]
    alerts: list[Alert]
    workers: list[SlotUse]
    suspects: dict[Ours, int]
    long_transactions: list[LongTransaction]
    waiting_for_limit: dict[Ours, int]
    rate_delay_seconds: dict[Ours, float]
    breakers: list[BreakerState]
    batches: list[BatchFigures]
    paused: list[Pause]
    notifications_pending: int | None = Field(description="null while Redis does not answer")


@action(scope=Scope.READ)
def get_stats(desk: Desk) -> Stats:
    """Count events by source and status, and rejected deliveries by reason; say what waits."""
    with desk.connection.transaction():  # so that what adds up in the ledger adds up here
        desk.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return Stats(**_numbers(desk), notifications_pending=_pending(desk.settings.redis_url))


def _numbers(desk: Desk) -> dict[str, Any]:
    connection = desk.connection
    events = totals.events_by_status(connection)
    gone = event_accounts.gone(connection).values()
    by_status = Counter[str]()
    for _, status, n in events:
        by_status[status] += n
    account = {**by_status, "pruned": sum(g.pruned for g in gone)}
    replayed = sum(g.replayed.total() for g in gone)
    return {
        "account": {"accepted": sum(account.values()), **account, "replayed": replayed},
        "events": [{"source": source, "status": status, "count": n} for source, status, n in events],
        "dead": by_status[EventStatus.DEAD],
        "held": by_status[EventStatus.HELD],
        "oldest_due_seconds": round(backlog.oldest_due(connection), 1),
        **dict(zip(("conflicts", "keys_reused"), totals.conflicts(connection), strict=True)),
        "rejected": [
            {"source": source, "reason": reason, "count": n}
            for source, reason, n in totals.rejections(connection)
        ],
        "secrets": [
            {"source": source, "slot": slot, "count": n, "last_used": last}
            for source, slots in totals.secrets(connection).items()
            for slot, (n, last) in slots.items()
        ],
        "alerts": shown(Alert, alerts.open_alerts(connection)),
        "workers": [
            {
                **each._asdict(),
                "seconds_ago": round(worker_slots.age(connection, each).total_seconds()),
            }
            for each in worker_slots.workers(connection)
        ],
        "suspects": worker_slots.suspects(connection),
        "long_transactions": long_transactions(desk),
        "waiting_for_limit": limit_gate.waiting(connection),
        "rate_delay_seconds": {
            handler: round(delay.total_seconds(), 1)
            for handler, delay in limit_gate.delays(connection).items()
        },
        "breakers": shown(BreakerState, breakers.breakers(connection)),
        "batches": [{"handler": handler, **each._asdict()} for handler, each in batches(desk).items()],
        "paused": shown(Pause, pauses.paused(connection)),
    }


def _pending(url: str) -> int | None:
    try:
        with connect(url) as client:
            return pending(client)
    except (RedisUnavailable, ValueError):
        return None


def batches(desk: Desk) -> dict[str, batch_figures.BatchFigures]:
    """Return what became of the batches of handlers."""
    found = batch_figures.figures(desk.connection)
    if not any(each.error for each in found.values()) or is_handed_out(desk, "batches"):
        return found
    return {name: each._replace(error=each.error and brief(each.error)) for name, each in found.items()}
