"""`hookonce limits` and `hookonce breakers`: what holds handlers up."""

import click

from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.cli.output.times import ago, soon
from hookonce.receiver.desk.pauses import Handler, list_handlers
from hookonce.receiver.ledger.handlers import HandlerLimits


@click.command()
@AS_JSON
def limits(*, as_json: bool) -> None:
    """List what the runs of handlers are held to, and how many wait for it."""
    found = [each for each in _handlers() if each.limits and any(each.limits.model_dump().values())]
    if as_json:
        for each in found:
            print_json(each.model_dump(include={"name", "limits", "waiting_for_limit", "rate_delay_seconds"}))
        return
    show(
        ("handler", "limits", "wait for a place", "delay"),
        [
            (each.name, _words(each), each.waiting_for_limit, _delay(each.rate_delay_seconds))
            for each in found
        ],
        empty="no handler has a limit; `@on(rate=, concurrency=)` sets one",
    )


@click.command()
@AS_JSON
def breakers(*, as_json: bool) -> None:
    """List the circuit breakers of handlers: which are open, by which error, and when one event is tried."""
    found = [each for each in _handlers() if each.breaker or (each.limits and each.limits.breaker)]
    if as_json:
        for each in found:
            state = each.breaker.model_dump() if each.breaker else None
            print_json({"name": each.name, "limit": each.limits and each.limits.breaker, "breaker": state})
        return
    show(
        ("handler", "state", "failures", "next try", "waiting", "error"),
        [_breaker(each) for each in found],
        empty="no handler has a circuit breaker; `@on(breaker=)` gives it one",
    )


def _handlers() -> list[Handler]:
    with desk() as here:
        return here.ask(list_handlers).data


def _breaker(handler: Handler) -> list[object]:
    state = handler.breaker
    if state is None:
        return [handler.name, "closed", 0, None, 0, None]
    said = f"open since {ago(state.opened_at)}" if state.is_open else "closed"
    next_try = soon(state.try_at) if state.is_open else None
    return [handler.name, said, state.failures, next_try, state.waiting, state.error.partition("\n")[0]]


def _words(handler: Handler) -> str:
    return ", ".join(HandlerLimits.of(handler.limits.model_dump() if handler.limits else None).words())


def _delay(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds else "none"
