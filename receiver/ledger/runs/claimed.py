"""What a worker holds between claim and end: events under its lease, and their runs.

The fields of `ClaimedEvent` and `ExistingRun` are what the claim reads: their names are its columns.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from hookonce.receiver.ledger.columns import Column, InBodies, InEvents
from hookonce.receiver.ledger.states import RunStatus

LEASE_MARGIN = timedelta(seconds=15)
"""How much longer than its time limit a started run stays ours."""
LONG_LEASE = timedelta(seconds=30)
"""How long a start of a handler with tx="none" is good for, and each renewal (`receiver.ledger.runs.renewal`)."""
UNSTARTED_MARGIN = timedelta(seconds=5)
"""How much longer than the worker's budget an unstarted one does."""


class LeaseLost(Exception):  # noqa: N818  a verdict about who may write
    """The lease ran out and somebody else may have what it was on, or it was ended for us: nothing may be written."""


class Attempt(NamedTuple):
    """What tells an attempt from all others while it is under way."""

    event: int
    handler: str
    token: uuid.UUID


class ClaimedEvent(NamedTuple):
    """An event under our lease, as the ledger held it when it was claimed.

    `headers` and `url` are None where the body was dropped; `body` also where it is heavy (see `load_body`).
    A body is sealed with the key `key_id`, unless that is None.
    """

    id: InEvents[int]
    source: InEvents[str]
    provider: InEvents[str]
    event_id: InEvents[str]
    type: InEvents[str]
    account: InEvents[str | None]
    received_at: InEvents[datetime]
    occurred_at: InEvents[datetime | None]
    repeat_of: InEvents[int | None]
    status: InEvents[str]
    due_at: InEvents[datetime]
    fingerprint: InEvents[bytes]
    is_test: InEvents[bool]
    keep_body: InEvents[bool]
    url: InBodies[str | None]
    headers: InBodies[dict[str, str] | None]
    body: Annotated[
        bytes | None, Column("bodies", "CASE WHEN octet_length(b.body) <= %(heavy)s THEN b.body END")
    ]
    is_element: Annotated[bool, Column("bodies", "coalesce(b.is_element, false)")]
    key_id: InBodies[str | None]
    traceparent: InBodies[str | None]


class ExistingRun(NamedTuple):
    """A run as the ledger holds it at the claim."""

    event: int
    handler: str
    status: str = RunStatus.WAITING
    attempts: int = 0
    cycle: int = 1
    is_due: bool = True
    parked: str | None = None
    slot_at: datetime | None = None
    schedule: str | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """One run under our lease.

    `attempt` is the number its next start gets, `lease` how long a start is good for, `is_sole` whether the
    event has no other run. A start by `end` leaves the event's `due_at` at the claim's: whoever comes for it
    then finds the run running, and sets it right. `beside`: others may run in the same process at the same time.
    `is_trial`: it is run to see whether its handler, whose breaker is open, can go on.
    """

    event: ClaimedEvent
    handler: str
    attempt: int
    cycle: int
    token: uuid.UUID
    lease: timedelta
    is_sole: bool
    beside: bool = False
    is_trial: bool = False
