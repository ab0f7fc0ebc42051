"""What a module of handlers imports.

from hookonce import GiveUp, RetryLater, on

@on("stripe", "invoice.paid")
def credit(event, tx):
    tx.execute(...)          # commits together with the run's `done`
    return {"credited": True}

A second parameter named `session` gets an ORM session instead (docs/how-to/handlers.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookonce.jobs.event import ReceivedEvent
    from hookonce.jobs.failure_callbacks import FailedAttempt, on_failure
    from hookonce.jobs.handlers import GiveUp, RetryLater, on

__all__ = ["FailedAttempt", "GiveUp", "ReceivedEvent", "RetryLater", "on", "on_failure"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  what a module has
    """Import a name when it is asked for: every command imports this package, few of them need any."""
    if name == "ReceivedEvent":
        from hookonce.jobs.event import ReceivedEvent

        return ReceivedEvent
    if name in {"FailedAttempt", "on_failure"}:
        from hookonce.jobs import failure_callbacks

        return getattr(failure_callbacks, name)
    if name in __all__:
        from hookonce.jobs import handlers

        return getattr(handlers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
