"""The names that a module of handlers imports.

from hookonce import GiveUp, RetryLater, on

@on("stripe", "invoice.paid")
def credit(event, tx):
    tx.execute(...)          # commits together with the run's `done`
    return {"credited": True}

A second parameter named `session` gets an ORM session instead (docs/how-to/handlers.md).
"""

from typing import TYPE_CHECKING

from hookonce import late_names

if TYPE_CHECKING:
    from hookonce.jobs.attempts.failure_callbacks import FailedAttempt as FailedAttempt
    from hookonce.jobs.attempts.failure_callbacks import on_failure as on_failure
    from hookonce.jobs.capabilities.steps import NEVER_HAPPENED as NEVER_HAPPENED
    from hookonce.jobs.capabilities.steps import UNKNOWN as UNKNOWN
    from hookonce.jobs.capabilities.steps import StepStopped as StepStopped
    from hookonce.jobs.event import ReceivedEvent as ReceivedEvent
    from hookonce.jobs.event import Refusal as Refusal
    from hookonce.jobs.event import StepError as StepError
    from hookonce.jobs.event import WaitError as WaitError
    from hookonce.jobs.handlers import GiveUp as GiveUp
    from hookonce.jobs.handlers import RetryLater as RetryLater
    from hookonce.jobs.registration import on as on
    from hookonce.jobs.registration import on_batch as on_batch
    from hookonce.receiver.endpoints.attempt import Operation as Operation
    from hookonce.receiver.endpoints.attempt import current_operation as current_operation
    from hookonce.receiver.endpoints.endpoint import idempotent as idempotent
    from hookonce.receiver.endpoints.frameworks.fastapi_routes import IdempotentRoute as IdempotentRoute
    from hookonce.receiver.idempotency.dynamodb import DynamoStore as DynamoStore
    from hookonce.receiver.idempotency.postgresql import PostgresStore as PostgresStore
    from hookonce.receiver.idempotency.records import InProgress as InProgress
    from hookonce.receiver.idempotency.records import KeyReused as KeyReused
    from hookonce.receiver.idempotency.records import StoreUnavailable as StoreUnavailable
    from hookonce.receiver.idempotency.redis_hash import RedisStore as RedisStore
    from hookonce.receiver.idempotency.sealed import SealedStore as SealedStore
    from hookonce.receiver.ledger.runs.claimed import LeaseLost as LeaseLost
    from hookonce.receiver.redis.approximate import Approximate as Approximate
    from hookonce.receiver.redis.approximate import approximate as approximate
else:
    __getattr__ = late_names.getter(__name__)
