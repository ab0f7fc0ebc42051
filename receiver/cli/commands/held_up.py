"""`hookonce limits` and `hookonce breakers`: what holds handlers up."""

from typing import Any

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.output.times import ago, soon
from hookonce.receiver.desk.pauses import Handler, list_handlers
from hookonce.receiver.ledger.handlers import HandlerLimits


def limits_of(handler: Handler) -> str:
    """Return what the runs of a handler are held to, in words."""
    return ", ".join(HandlerLimits.of(handler.limits.model_dump() if handler.limits else None).words())


def _state(handler: Handler) -> str:
    state = handler.breaker
    return f"open since {ago(state.opened_at)}" if state and state.is_open else "closed"


def _next_try(handler: Handler) -> str | None:
    state = handler.breaker
    return soon(state.try_at) if state and state.is_open else None


def _breaker(handler: Handler) -> dict[str, Any]:
    state = handler.breaker.model_dump() if handler.breaker else None
    return {"name": handler.name, "limit": handler.limits and handler.limits.breaker, "breaker": state}


limits = listing(
    list_handlers,
    {
        "handler": "name",
        "limits": limits_of,
        "wait for a place": "waiting_for_limit",
        "delay": lambda handler: (
            f"{handler.rate_delay_seconds:.0f} s" if handler.rate_delay_seconds else "none"
        ),
    },
    "no handler has a limit; `@on(rate=, concurrency=)` sets one",
    rows_of=lambda handler: [handler] if limits_of(handler) else [],
    document=lambda handler: handler.model_dump(
        include={"name", "limits", "waiting_for_limit", "rate_delay_seconds"}
    ),
    about="List what the runs of handlers are held to, and how many wait for it.",
)

breakers = listing(
    list_handlers,
    {
        "handler": "name",
        "state": _state,
        "failures": lambda handler: handler.breaker.failures if handler.breaker else 0,
        "next try": _next_try,
        "waiting": lambda handler: handler.breaker.waiting if handler.breaker else 0,
        "error": lambda handler: handler.breaker and handler.breaker.error.partition("\n")[0],
    },
    "no handler has a circuit breaker; `@on(breaker=)` gives it one",
    rows_of=lambda handler: (
        [handler] if handler.breaker or (handler.limits and handler.limits.breaker) else []
    ),
    document=_breaker,
    about="List the circuit breakers of handlers: which are open, by which error, and when one event is tried.",
)
