"""Handlers, and pauses of sources and handlers."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from hookonce.receiver.api.models import RequestModel, ResponseModel, Text
from hookonce.receiver.api.operations import Call, operation
from hookonce.receiver.api.problem import Problem
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.handlers import known_handlers, limits_of
from hookonce.receiver.ledger.reasons import PAUSES
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.stats import batch_figures


def _kind(value: str) -> str:
    if value not in PAUSES:
        raise ValueError(f"expected one of {', '.join(PAUSES)}")
    return value


Kind = Annotated[
    str, AfterValidator(_kind), WithJsonSchema({"type": "string", "enum": list(PAUSES), "title": "Kind"})
]


class PausePath(RequestModel):
    """What is paused, by its kind and its name."""

    kind: Kind
    name: Text


class Pause(ResponseModel):
    """A pause: deliveries are taken in all the same, runs wait."""

    kind: Kind
    name: str
    by: Literal["person", "breaker"] = Field(
        description="`breaker`: the handler's own, which ends it when a try succeeds; pause it, and the pause is yours"
    )
    since: datetime


class Pauses(ResponseModel):
    """What is paused, by kind and name."""

    data: list[Pause]


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


class Limits(ResponseModel):
    """What a handler's runs are held to, as its worker says; null for what it does not limit."""

    rate: str | None = Field(description="how often it may start, like `100/m`")
    concurrency: int | None = Field(description="how many runs may be under way at once")
    per: str | None = Field(description="`account` or `source`: each is held to these by itself")
    breaker: int | None = Field(description="after how many failures in a row it is stopped")
    tx: str | None = Field(description="`none`: it has no transaction of its own while it runs")
    wait_seconds: float | None = Field(description="how long events wait for one another to be a batch")


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


class Handler(ResponseModel):
    """A handler that a worker has, that has run lately, or is paused."""

    name: str
    is_paused: bool
    paused_by: Literal["person", "breaker"] | None
    limits: Limits | None = Field(description="null if no worker has named it within a day")
    breaker: HandlerBreaker | None = Field(
        description="its failures in a row, if it has a breaker and failed last"
    )
    waiting_for_limit: int = Field(
        description=f"runs that wait because so many run as its limit allows; {limit_gate.MAX_WAITING} at most"
    )
    rate_delay_seconds: float = Field(
        description="how long what comes now waits for the handler's rate; of several accounts or sources the longest"
    )
    batches: HandlerBatches | None = Field(description="null if it has taken none")


class Handlers(ResponseModel):
    """Handlers by name."""

    data: list[Handler]


@operation("GET", "/handlers", scope=Scope.READ)
def list_handlers(call: Call) -> Handlers:
    """List the handlers that workers have, those of recent runs, and those that are paused."""
    paused = pauses.by_handler(call.connection)
    limits = limits_of(known_handlers(call.connection))
    failing = {
        each.handler: HandlerBreaker.model_validate(each, from_attributes=True)
        for each in breakers.breakers(call.connection)
    }
    waiting = limit_gate.waiting(call.connection)
    delays = limit_gate.delays(call.connection)
    in_batches = {
        handler: HandlerBatches.model_validate(each, from_attributes=True)
        for handler, each in batch_figures.figures(call.connection).items()
    }
    names = {*pauses.handlers(call.connection), *paused, *failing, *waiting, *delays, *in_batches}
    return Handlers(
        data=[
            Handler(
                name=name,
                is_paused=name in paused,
                paused_by=_by(paused[name]) if name in paused else None,
                limits=Limits.model_validate(limits[name], from_attributes=True) if name in limits else None,
                breaker=failing.get(name),
                waiting_for_limit=waiting.get(name, 0),
                rate_delay_seconds=delays.get(name, timedelta()).total_seconds(),
                batches=in_batches.get(name),
            )
            for name in sorted(names)
        ]
    )


@operation("GET", "/pauses", scope=Scope.READ)
def list_pauses(call: Call) -> Pauses:
    """List what is paused."""
    return Pauses(data=[_shown(each) for each in pauses.paused(call.connection)])


@operation("PUT", "/pauses/{kind}/{name}", scope=Scope.ADMIN)
def pause(call: Call, path: PausePath) -> Pause:
    """Pause something, for a person. A handler's name is taken at its word: it may never have run yet."""
    wanted = PAUSES[path.kind]
    if not wanted.may_be(path.name, call.settings.sources):
        raise Problem(
            404, f"no source is called '{wanted.source_of(path.name) or path.name}'; `/sources` lists them"
        )
    pauses.pause(call.connection, path.kind, path.name, call.who)
    for each in pauses.paused(call.connection):
        if (each.kind, each.name) == (path.kind, path.name):
            return _shown(each)
    raise Problem(409, f"the {path.kind} '{path.name}' was resumed at the same moment")


@operation("DELETE", "/pauses/{kind}/{name}", scope=Scope.ADMIN, is_atomic=False)
def resume(call: Call, path: PausePath) -> None:
    """End a pause: what waited is due at once, retries included."""
    if not pauses.resume(call.connection, path.kind, path.name, call.who, pauses.PATIENCE):
        raise Problem(404, f"the {path.kind} '{path.name}' is not paused; `/pauses` lists what is")
    call.notifies_workers = True


def _shown(pause: pauses.Pause) -> Pause:
    return Pause(
        kind=pause.kind,
        name=pause.name,
        by=_by(pause),
        since=pause.since,
    )


def _by(pause: pauses.Pause) -> Literal["person", "breaker"]:
    return "breaker" if pause.is_of_breaker else "person"


OPERATIONS = (list_handlers, list_pauses, pause, resume)
