"""Handlers, and pauses of sources and handlers."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Literal

from pydantic import Field

from hookonce.receiver.config.suggestions import no_source
from hookonce.receiver.desk.models import Listed, RequestModel, Text
from hookonce.receiver.desk.refusals import Conflict, NotFound
from hookonce.receiver.desk.registry import Asks, Desk, Plan, action, looks_at
from hookonce.receiver.desk.sources import list_sources
from hookonce.receiver.desk.stats import Kind, batches
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.handlers import HandlerLimits, KnownHandler, known_handlers, limits_of
from hookonce.receiver.ledger.pauses import Pause
from hookonce.receiver.ledger.queries import choices, handler_stats
from hookonce.receiver.ledger.queries.handler_stats import HandlerStats
from hookonce.receiver.ledger.reasons import HANDLER, OF_ROWS, PAUSES, SOURCE
from hookonce.receiver.ledger.runs import breakers, limit_gate
from hookonce.receiver.ledger.runs.breakers import Breaker
from hookonce.receiver.ledger.stats import worker_slots
from hookonce.receiver.ledger.stats.counters import BatchFigures
from hookonce.receiver.ledger.stats.worker_slots import LongTransaction

__all__ = ["HANDLER", "OF_ROWS", "PAUSES", "SOURCE", "Pause"]
"""Pauses and their kinds; what is defined here is imported by its name."""


class PausePath(RequestModel):
    """A source or a handler, by its kind and its name."""

    kind: Kind
    name: Text


class Handler(HandlerStats):
    """A handler that a worker has, that has run lately, or is paused."""

    takes: list[KnownHandler] = Field(description="none if no worker has named it within a day")
    is_paused: bool
    paused_by: Literal["person", "breaker"] | None
    limits: HandlerLimits | None = Field(description="null if no worker has named it within a day")
    breaker: Breaker | None = Field(description="its failures in a row, if it has a breaker and failed last")
    waiting_for_limit: int = Field(
        description=f"runs that wait because so many run as its limit allows; {limit_gate.MAX_WAITING} at most"
    )
    rate_delay_seconds: float = Field(
        description="how long what comes now waits for the handler's rate; of several accounts or sources the longest"
    )
    batches: BatchFigures | None = Field(description="null if it has taken none")
    suspects: int = Field(description="runs whose worker died beside others; each is run by itself")
    long_transaction: LongTransaction | None = Field(description="the longest of its that wrote and waits")


@action(scope=Scope.READ)
def list_handlers(desk: Desk) -> Listed[Handler]:
    """List the handlers that workers have, those of recent runs, and those that are paused."""
    paused = pauses.by_handler(desk.connection)
    known = known_handlers(desk.connection)
    limits = limits_of(known)
    stats = {each.name: each for each in handler_stats.handlers(desk.connection)}
    failing = {each.handler: each for each in breakers.breakers(desk.connection)}
    waiting = limit_gate.waiting(desk.connection)
    delays = limit_gate.delays(desk.connection)
    in_batches = {each.handler: each for each in batches(desk)}
    suspects = worker_slots.suspects(desk.connection)
    long = {each.handler: each for each in reversed(worker_slots.long_transactions(desk.connection))}
    held_up = {*failing, *waiting, *delays, *in_batches, *suspects, *long}
    names = {*choices.handlers(desk.connection), *paused, *held_up}
    return Listed[Handler](
        data=[
            Handler(
                **dict(stats.get(name) or HandlerStats(name=name)),
                takes=[each for each in known if each.handler == name],
                is_paused=name in paused,
                paused_by=paused[name].by if name in paused else None,
                limits=limits.get(name),
                breaker=failing.get(name),
                waiting_for_limit=waiting.get(name, 0),
                rate_delay_seconds=delays.get(name, timedelta()).total_seconds(),
                batches=in_batches.get(name),
                suspects=suspects.get(name, 0),
                long_transaction=long.get(name),
            )
            for name in sorted(names)
        ]
    )


@action(scope=Scope.READ)
def list_pauses(desk: Desk) -> Listed[Pause]:
    """List what is paused."""
    return Listed[Pause](data=pauses.paused(desk.connection))


def _what_is_paused(here: Asks, which: PausePath) -> Plan:
    _require_source(which, [each.name for each in here.ask(list_sources).data])
    return Plan(here.ask(list_pauses), {"which": which})


@action(scope=Scope.ADMIN, looks=_what_is_paused)
def pause(desk: Desk, which: PausePath) -> Pause:
    """Pause something, for a person. A handler's name is taken at its word: it may never have run yet."""
    _require_source(which, desk.settings.sources)
    pauses.pause(desk.connection, which.kind, which.name, desk.who)
    for each in pauses.paused(desk.connection):
        if (each.kind, each.name) == (which.kind, which.name):
            return each
    raise Conflict(f"the {which.kind} '{which.name}' was resumed at the same moment")


def _require_paused(found: Iterable[Pause], which: PausePath) -> None:
    if (which.kind, which.name) not in [(each.kind, each.name) for each in found]:
        raise NotFound(f"the {which.kind} '{which.name}' is not paused; `hookonce stats` says what is")


@action(scope=Scope.ADMIN, looks=looks_at(list_pauses, _require_paused), is_atomic=False)
def resume(desk: Desk, which: PausePath) -> None:
    """End a pause: what waited is due at once, retries included."""
    if not pauses.resume(desk.connection, which.kind, which.name, desk.who, pauses.PATIENCE):
        _require_paused([], which)
    desk.notifies_workers = True


def _require_source(which: PausePath, known: Collection[str]) -> None:
    wanted = PAUSES[which.kind]
    if not wanted.may_be(which.name, known):
        source = wanted.source_of(which.name)
        raise NotFound(no_source(source, known) if source else f"{which.name!r} does not name {wanted.noun}")
