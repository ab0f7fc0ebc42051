"""Workers that run many at once: their slots, what is to be run by itself, and transactions that wait."""

from datetime import datetime

from pydantic import Field

from hookonce.receiver.desk.models import Identifier, Ours, ResponseModel, shown
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.stats import worker_slots


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
