"""`hookonce limits`: the limits and circuit breakers of handlers, and what they hold back."""

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.output.times import ago, soon
from hookonce.receiver.desk.pauses import Handler, list_handlers


def limits_of(handler: Handler) -> str:
    """Return what the runs of a handler are held to, in words."""
    return ", ".join(handler.limits.words()) if handler.limits else ""


def _state(handler: Handler) -> str | None:
    state = handler.breaker
    if state is None and not (handler.limits and handler.limits.breaker):
        return None
    return f"open since {ago(state.opened_at)}" if state and state.is_open else "closed"


def _next_try(handler: Handler) -> str | None:
    state = handler.breaker
    return soon(state.try_at) if state and state.is_open else None


limits = listing(
    list_handlers,
    {
        "handler": "name",
        "limits": limits_of,
        "queued": "waiting_for_limit",
        "delay": lambda handler: (
            f"{handler.rate_delay_seconds:.0f} s" if handler.rate_delay_seconds else None
        ),
        "breaker": _state,
        "failures": lambda handler: handler.breaker.failures if handler.breaker else None,
        "next try": _next_try,
        "held back": lambda handler: handler.breaker.waiting if handler.breaker else None,
        "error": lambda handler: handler.breaker and handler.breaker.error.partition("\n")[0],
    },
    "no handler has a limit or a circuit breaker; `@on(rate=, concurrency=, breaker=)` sets them",
    rows_of=lambda handler: [handler] if limits_of(handler) or handler.breaker else [],
    document=lambda handler: handler.model_dump(
        include={"name", "limits", "waiting_for_limit", "rate_delay_seconds", "breaker"}
    ),
    about="List the limits and circuit breakers of handlers, what they hold back, and when a handler is tried again.",
)
