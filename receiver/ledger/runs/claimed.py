"""Claimed runs, held by a worker between claim and end: rows of the queue under its lease, with their events.

The fields of `ClaimedEvent` are what the claim reads of an event: their names are its columns.
"""

import uuid
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from hookonce.receiver.ledger.rows import Column, InBodies, InEvents

LEASE = timedelta(seconds=30)
"""How long a claim is good for, and each renewal of it (`receiver.ledger.runs.leases`)."""
_BEGAN = "greatest(pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time())"
LEASE_IS_OVER = f"""
lease_until <= now() AND NOT (made_at <= {_BEGAN} AND {_BEGAN} BETWEEN now() - interval '10 s' AND now())
"""
"""SQL: nobody renews a claim any more. While the server was away nobody could; who lives does when it is back."""


class LeaseLost(Exception):  # noqa: N818  a verdict about who may write
    """The lease ran out and somebody else may have what it was on, or it was ended for us: nothing may be written."""


QueueKey = tuple[int, int]
"""A row of the queue: its event, and `n`."""


class RunKey(NamedTuple):
    """The key of an attempt while it is under way: its row of the queue, and under which claim."""

    event: int
    n: int
    token: uuid.UUID


class ClaimedEvent(NamedTuple):
    """An event under our lease, as the ledger holds it.

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


class QueuedRun(NamedTuple):
    """A row of the queue that is due, locked by a claim, and its event.

    `n` tells an event's rows apart; `handler` is None for an event that no worker has met. `attempts` are those used
    up, `slot_at` the time that a rate has given it, `schedule` by which (`run_limits.rate_of`).
    """

    event: ClaimedEvent
    n: int
    handler: str | None
    cycle: int
    attempts: int
    due_at: datetime
    waits: str | None
    slot_at: datetime | None
    schedule: str | None


class ClaimedRun(NamedTuple):
    """One run under our lease: row `n` of its event in the queue.

    `attempt` is the number that its start has. `is_suspect`: nothing runs beside it. `is_trial`: it is run to see
    whether its handler, whose breaker is open, can go on.
    """

    event: ClaimedEvent
    n: int
    handler: str
    attempt: int
    cycle: int
    token: uuid.UUID
    is_suspect: bool = False
    is_trial: bool = False

    @property
    def key(self) -> RunKey:
        """The key of this attempt."""
        return RunKey(self.event.id, self.n, self.token)
