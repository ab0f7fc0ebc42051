"""Lists of senders, as far as they were compared, events that are missing, and subscriptions.

Times are the caller's, but for leases: a process that has one goes on alone until it lets go, or dies. What it writes
after that is refused: each lease has a token.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as
from hookonce.receiver.source import Source

MAX_MISSING: Final = 10_000
"""Missing events that are kept by name, for each source."""


class LeaseLost(Exception):  # noqa: N818  a verdict about who may write
    """Another process has the lease by now, and nothing is written under this one."""


class ListingState(NamedTuple):
    """How far the list of a source's sender was compared with the ledger."""

    source: str
    created_at: datetime
    due_at: datetime
    begun_at: datetime | None
    since: datetime | None
    cursor: str
    days: dict[str, int]
    checked_until: datetime | None
    asked_at: datetime | None
    problem: str | None
    failed_since: datetime | None
    gap: str | None
    probed_at: datetime | None
    seen_id: int
    token: UUID | None


class ListedDay(ResponseModel):
    """A day (UTC) of what its sender lists: how many events, and how many of them the ledger has."""

    day: date
    listed: int
    in_ledger: int


class MissingEvent(ResponseModel):
    """An event that its sender lists and the ledger has not."""

    source: Ours
    event_id: str
    type: str
    listed_at: datetime
    found_at: datetime
    reference: str = Field(description="name of the delivery at its sender, which a redelivery needs")
    why: Ours
    tried_at: list[datetime] = Field(
        default_factory=list, description="when its sender was asked to deliver it again"
    )


class SubscriptionState(ResponseModel):
    """A subscription of a source, as it is renewed: until when it lasts, and how often it was made."""

    source: Ours
    resource: Ours
    id: str | None
    handle: str | None
    expires_at: datetime | None
    due_at: datetime
    made: int
    remade_at: datetime | None
    problem: Ours | None
    failed_since: datetime | None


class LeasedSubscription(SubscriptionState):
    """A subscription under a lease."""

    token: UUID


_LISTING = ", ".join(ListingState._fields)
_MISSING = ", ".join(MissingEvent.model_fields)
_SUBSCRIPTION = ", ".join(SubscriptionState.model_fields)
_LEASE_LISTING = f"""
INSERT INTO hookonce.listings AS l (source, created_at, due_at, lease_until, token)
VALUES (%(source)s, %(now)s, %(now)s, now() + %(lease)s, gen_random_uuid())
ON CONFLICT (source) DO UPDATE SET lease_until = excluded.lease_until, token = excluded.token
WHERE coalesce(l.lease_until, 'epoch') < now()
RETURNING {_LISTING}
"""  # noqa: S608  names of ours
_LEASE_SUBSCRIPTION = f"""
INSERT INTO hookonce.subscriptions AS s (source, resource, due_at, lease_until, token)
VALUES (%(source)s, %(resource)s, %(now)s, now() + %(lease)s, gen_random_uuid())
ON CONFLICT (source, resource) DO UPDATE SET lease_until = excluded.lease_until, token = excluded.token
WHERE s.due_at <= %(now)s AND coalesce(s.lease_until, 'epoch') < now()
RETURNING {_SUBSCRIPTION}, token
"""  # noqa: S608  names of ours


def listings(connection: psycopg.Connection) -> dict[str, ListingState]:
    """Return how far each list was compared, by source."""
    rows = all_as(ListingState, connection, f"SELECT {_LISTING} FROM hookonce.listings")  # noqa: S608  names of ours
    return {row.source: row for row in rows}


def lease_listing(
    connection: psycopg.Connection, source: str, now: datetime, lease: timedelta
) -> ListingState | None:
    """Take the lease of a source's list; None while another process has it."""
    values = {"source": source, "now": now, "lease": lease}
    return next(iter(all_as(ListingState, connection, _LEASE_LISTING, values)), None)


def update_listing(
    connection: psycopg.Connection, leased: ListingState, lease: timedelta | None = None, **columns: object
) -> None:
    """Set columns of a source's list, or with `lease` have that last so long. Raises: `LeaseLost`."""
    set_to = [f"{name} = %({name})s" for name in columns] + ["lease_until = now() + %(lease)s"] * bool(lease)
    done = connection.execute(
        f"UPDATE hookonce.listings SET {', '.join(set_to)} WHERE (source, token) = (%(of)s, %(by)s)",  # noqa: S608  names of ours
        {**columns, "lease": lease, "of": leased.source, "by": leased.token},
    )
    if not done.rowcount:
        raise LeaseLost(f"another process compares the list of source '{leased.source}' by now")


def let_go(connection: psycopg.Connection, leased: ListingState) -> None:
    """End the lease of a source's list, unless another process has it by now."""
    connection.execute(
        "UPDATE hookonce.listings SET lease_until = NULL WHERE (source, token) = (%s, %s)",
        [leased.source, leased.token],
    )


def known(
    connection: psycopg.Connection, sources: Sequence[str], event_ids: Sequence[str]
) -> dict[str, set[str]]:
    """Return which of some ids the ledger has, and of which sources."""
    rows = connection.execute(
        "SELECT event_id, source FROM hookonce.events WHERE source = ANY(%s) AND event_id = ANY(%s)",
        [list(sources), list(event_ids)],
    )
    found: dict[str, set[str]] = {}
    for event_id, source in rows:
        found.setdefault(event_id, set()).add(source)
    return found


def newest_id(connection: psycopg.Connection) -> int:
    """Return the id of the newest event; 0 where there is none."""
    row = connection.execute("SELECT max(id) FROM hookonce.events").fetchone()
    return row[0] or 0 if row else 0


def came_after(connection: psycopg.Connection, source: str, event: int) -> bool:
    """Whether an event of a source came after the one of this id."""
    query = "SELECT FROM hookonce.events WHERE id > %s AND source = %s LIMIT 1"
    return connection.execute(query, [event, source]).fetchone() is not None


def count_listed(connection: psycopg.Connection, source: str, days: Mapping[str, int]) -> None:
    """Add to how many events a sender lists of each day."""
    for day, number in sorted(days.items()):
        connection.execute(
            "INSERT INTO hookonce.listed_days AS d VALUES (%s, %s, %s) "
            "ON CONFLICT (source, day) DO UPDATE SET listed = d.listed + excluded.listed",
            [source, day, number],
        )


def add_missing(connection: psycopg.Connection, found: Sequence[MissingEvent]) -> None:
    """Keep what is missing, as long as there are not too many; what was known keeps what was tried."""
    for each in found:
        connection.execute(
            "INSERT INTO hookonce.missing_events (source, event_id, type, listed_at, found_at, reference, why) "
            "SELECT %s, %s, %s, %s, %s, %s, %s "
            "WHERE (SELECT count(*) FROM hookonce.missing_events WHERE source = %s) < %s "
            "ON CONFLICT (source, event_id) DO UPDATE SET reference = excluded.reference, why = excluded.why",
            [*each.model_dump(exclude={"tried_at"}).values(), each.source, MAX_MISSING],
        )


def arrived(connection: psycopg.Connection, source: str, forgotten: datetime) -> int:
    """Let go of what is not missing any more, or was listed before a time; return how many there were."""
    return connection.execute(
        "DELETE FROM hookonce.missing_events m WHERE source = %s AND (listed_at < %s OR EXISTS "
        "(SELECT FROM hookonce.events e WHERE (e.source, e.event_id) = (m.source, m.event_id)))",
        [source, forgotten],
    ).rowcount


def missing(connection: psycopg.Connection, source: str, limit: int = MAX_MISSING) -> list[MissingEvent]:
    """Return what is missing of a source, the oldest first."""
    query = f"SELECT {_MISSING} FROM hookonce.missing_events WHERE source = %s ORDER BY listed_at LIMIT %s"  # noqa: S608
    return all_as(MissingEvent, connection, query, [source, limit])


def missing_counts(connection: psycopg.Connection) -> dict[str, tuple[int, datetime]]:
    """Return how many events are missing of each source, and when the first of them was found to be."""
    rows = connection.execute(
        "SELECT source, count(*), min(found_at) FROM hookonce.missing_events GROUP BY source"
    )
    return {source: (number, first) for source, number, first in rows}


def try_again(
    connection: psycopg.Connection, each: MissingEvent, now: datetime, most: int, within: timedelta
) -> bool:
    """Note a redelivery before it is asked for; False where there were `most` within so long, by any process."""
    done = connection.execute(
        "UPDATE hookonce.missing_events m SET tried_at = array_append(ARRAY("
        "SELECT t FROM unnest(m.tried_at) AS t WHERE t > %(from)s), %(now)s::timestamptz) "
        "WHERE (source, event_id) = (%(source)s, %(id)s) "
        "AND (SELECT count(*) FROM unnest(m.tried_at) AS t WHERE t > %(from)s) < %(most)s",
        {"now": now, "from": now - within, "source": each.source, "id": each.event_id, "most": most},
    )
    return done.rowcount > 0


def days_of(connection: psycopg.Connection, source: str, limit: int) -> list[ListedDay]:
    """Return how many events are listed of each day, and how many of them came; the newest day first."""
    query = (
        "SELECT d.day, d.listed, d.listed - (SELECT count(*) FROM hookonce.missing_events m "
        "WHERE m.source = d.source AND (m.listed_at AT TIME ZONE 'UTC')::date = d.day) AS in_ledger "
        "FROM hookonce.listed_days d WHERE source = %s ORDER BY day DESC LIMIT %s"
    )
    return all_as(ListedDay, connection, query, [source, limit])


def spend(connection: psycopg.Connection, key: str, now: datetime, most: int) -> bool:
    """Count a call with the key of this reference; False where the hour has had `most`."""
    row = connection.execute(
        "INSERT INTO hookonce.api_calls AS c VALUES (%(key)s, date_trunc('hour', %(now)s::timestamptz), 1) "
        "ON CONFLICT (key) DO UPDATE SET hour = excluded.hour, "
        "calls = CASE WHEN c.hour = excluded.hour THEN c.calls + 1 ELSE 1 END "
        "WHERE c.hour <> excluded.hour OR c.calls < %(most)s RETURNING calls",
        {"key": key, "now": now, "most": most},
    ).fetchone()
    return row is not None


def subscriptions(connection: psycopg.Connection, sources: Iterable[Source]) -> list[SubscriptionState]:
    """Return the subscriptions that are renewed of these sources; what they ask for no more is left to run out."""
    wanted = {(source.name, each.resource) for source in sources for each in source.renew}
    query = f"SELECT {_SUBSCRIPTION} FROM hookonce.subscriptions ORDER BY source, resource"  # noqa: S608
    rows = all_as(SubscriptionState, connection, query)
    return [row for row in rows if (row.source, row.resource) in wanted]


def lease_subscription(
    connection: psycopg.Connection, source: str, resource: str, now: datetime, lease: timedelta
) -> LeasedSubscription | None:
    """Take the lease of a subscription that is due; None where it is not, or another process has it."""
    values = {"source": source, "resource": resource, "now": now, "lease": lease}
    return next(iter(all_as(LeasedSubscription, connection, _LEASE_SUBSCRIPTION, values)), None)


def update_subscription(
    connection: psycopg.Connection, leased: LeasedSubscription, **columns: object
) -> None:
    """Set columns of a subscription and let go of it, unless another process has it by now."""
    names = ", ".join(f"{name} = %({name})s" for name in columns)
    connection.execute(
        f"UPDATE hookonce.subscriptions SET {names}, lease_until = NULL "  # noqa: S608  names of ours
        "WHERE (source, resource, token) = (%(of_source)s, %(of_resource)s, %(by)s)",
        {**columns, "of_source": leased.source, "of_resource": leased.resource, "by": leased.token},
    )
