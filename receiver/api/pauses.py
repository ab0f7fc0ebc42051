"""Handlers, and pauses of sources and handlers."""

from datetime import timedelta
from typing import Literal

from pydantic import Field

from hookonce.receiver.api.models import RequestModel, ResponseModel, Text
from hookonce.receiver.api.operations import Call, operation
from hookonce.receiver.api.problem import Problem
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.stats import batch_figures

Kind = Literal["source", "handler"]


class PausePath(RequestModel):
    """What is paused: a source or a handler, by its name."""

    kind: Kind
    name: Text


class Pause(ResponseModel):
    """A pause: deliveries are taken in all the same, runs wait."""

    kind: Kind
    name: str


class Pauses(ResponseModel):
    """What is paused, by kind and name."""

    data: list[Pause]


class HandlerBreaker(ResponseModel):
    """Failures in a row by one error; open: the handler is paused for it, and tried from time to time."""

    failures: int
    error: str
    is_open: bool


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
    """A handler that has run lately, or is paused."""

    name: str
    is_paused: bool
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
    """List the handlers of recent runs, and those that are paused."""
    paused = {name for kind, name in pauses.paused(call.connection) if kind == "handler"}
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
    return Pauses(data=[Pause.model_validate(each) for each in _paused(call)])


@operation("PUT", "/pauses/{kind}/{name}", scope=Scope.ADMIN)
def pause(call: Call, path: PausePath) -> Pause:
    """Pause a source or a handler. A handler's name is taken at its word: it may never have run yet."""
    if path.kind == "source" and path.name not in call.settings.sources:
        raise Problem(404, f"no source is called '{path.name}'; `/sources` lists them")
    pauses.pause(call.connection, path.kind, path.name, call.who)
    return Pause(kind=path.kind, name=path.name)


@operation("DELETE", "/pauses/{kind}/{name}", scope=Scope.ADMIN, is_atomic=False)
def resume(call: Call, path: PausePath) -> None:
    """End a pause: what waited is due at once, retries included."""
    if not pauses.resume(call.connection, path.kind, path.name, call.who, pauses.PATIENCE):
        raise Problem(404, f"the {path.kind} '{path.name}' is not paused; `/pauses` lists what is")
    call.notifies_workers = True


def _paused(call: Call) -> list[dict[str, str]]:
    return [{"kind": kind, "name": name} for kind, name in pauses.paused(call.connection)]


OPERATIONS = (list_handlers, list_pauses, pause, resume)
