"""What a module of handlers imports.

from hookonce import GiveUp, RetryLater, on

@on("stripe", "invoice.paid")
def credit(event, tx):
    tx.execute(...)          # commits together with the run's `done`
    return {"credited": True}

A second parameter named `session` gets an ORM session instead (docs/how-to/handlers.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookonce.jobs.attempts.failure_callbacks import FailedAttempt, on_failure
    from hookonce.jobs.event import ReceivedEvent, Refusal, StepError
    from hookonce.jobs.handlers import GiveUp, RetryLater
    from hookonce.jobs.registration import on, on_batch
    from hookonce.jobs.steps import NEVER_HAPPENED, UNKNOWN, StepStopped
    from hookonce.receiver.endpoints.attempt import Operation, current_operation
    from hookonce.receiver.endpoints.endpoint import idempotent
    from hookonce.receiver.endpoints.frameworks.fastapi_routes import IdempotentRoute
    from hookonce.receiver.idempotency.dynamodb import DynamoStore
    from hookonce.receiver.idempotency.postgresql import PostgresStore
    from hookonce.receiver.idempotency.records import InProgress, KeyReused, StoreUnavailable
    from hookonce.receiver.idempotency.redis_hash import RedisStore
    from hookonce.receiver.idempotency.sealed import SealedStore
    from hookonce.receiver.ledger.runs.claimed import LeaseLost

__all__ = [
    "NEVER_HAPPENED",
    "UNKNOWN",
    "DynamoStore",
    "FailedAttempt",
    "GiveUp",
    "IdempotentRoute",
    "InProgress",
    "KeyReused",
    "LeaseLost",
    "Operation",
    "PostgresStore",
    "ReceivedEvent",
    "RedisStore",
    "Refusal",
    "RetryLater",
    "SealedStore",
    "StepError",
    "StepStopped",
    "StoreUnavailable",
    "current_operation",
    "idempotent",
    "on",
    "on_batch",
    "on_failure",
]
_OF_OPERATIONS = {
    "DynamoStore": "idempotency.dynamodb",
    "IdempotentRoute": "endpoints.frameworks.fastapi_routes",
    "InProgress": "idempotency.records",
    "KeyReused": "idempotency.records",
    "Operation": "endpoints.attempt",
    "PostgresStore": "idempotency.postgresql",
    "RedisStore": "idempotency.redis_hash",
    "SealedStore": "idempotency.sealed",
    "StoreUnavailable": "idempotency.records",
    "current_operation": "endpoints.attempt",
    "idempotent": "endpoints.endpoint",
}
"""Where the names of operations are: some need an extra, or a framework."""

_OF_JOBS = {
    "NEVER_HAPPENED": "steps",
    "StepStopped": "steps",
    "UNKNOWN": "steps",
    "on": "registration",
    "on_batch": "registration",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  what a module has
    """Import a name when it is asked for: every command imports this package, few of them need any."""
    if name in {"ReceivedEvent", "Refusal", "StepError"}:
        from hookonce.jobs import event

        return getattr(event, name)
    if name in {"FailedAttempt", "on_failure"}:
        from hookonce.jobs.attempts import failure_callbacks

        return getattr(failure_callbacks, name)
    if name == "LeaseLost":
        from hookonce.receiver.ledger.runs import claimed

        return claimed.LeaseLost
    if name in _OF_JOBS:
        return getattr(import_module(f"hookonce.jobs.{_OF_JOBS[name]}"), name)
    if name in _OF_OPERATIONS:
        return getattr(import_module(f"hookonce.receiver.{_OF_OPERATIONS[name]}"), name)
    if name in __all__:
        from hookonce.jobs import handlers

        return getattr(handlers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
