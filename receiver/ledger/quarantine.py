"""Deliveries in quarantine: kept whole, sealed, and bounded for each source, whatever anyone sends.

The delivery that came first stays. When it is full, newcomers are refused, since what pushed others out could be used
to push out the genuine ones; and within one hour it fills half of its room at most, so that a flood leaves some for
those who come later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg

from hookonce.receiver.encryption import Keyring, quarantine_context
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.maintenance.steady_clock import IS_STEADY
from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as
from hookonce.receiver.source import MAX_QUARANTINE_TIME, Quarantine

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Held:
    """A delivery in quarantine: sealed, as it is stored."""

    id: int
    source: str
    reason: str
    arrived_at: datetime
    key_id: str
    delivery: bytes = field(repr=False)

    def opened(self, keyring: Keyring) -> bytes:
        """Return what was kept. Raises `CannotDecrypt`."""
        return keyring.open(
            self.delivery, self.key_id, quarantine_context(self.source, self.reason, self.arrived_at)
        )


@dataclass(frozen=True, slots=True)
class Arrival:
    """A delivery to be kept: why it was refused, how long ago it came, and all of it, packed."""

    reason: str
    age: timedelta
    packed: bytes = field(repr=False)


class Holding(ResponseModel):
    """The deliveries of a source in quarantine, for one reason."""

    source: Ours
    reason: Ours
    count: int
    bytes: int
    oldest: datetime
    newest: datetime


_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('quarantine ' || %s, 0))"

_ROOM = """
SELECT clock_timestamp(), count(*), coalesce(sum(octet_length(delivery)), 0),
       count(*) FILTER (WHERE arrived_at > now() - %(hour)s),
       coalesce(sum(octet_length(delivery)) FILTER (WHERE arrived_at > now() - %(hour)s), 0)
FROM hookonce.quarantine WHERE source = %(source)s
"""

_KEEP = """
INSERT INTO hookonce.quarantine (source, reason, arrived_at, key_id, delivery) VALUES (%s, %s, %s, %s, %s)
"""

_IS_OLD = f"arrived_at < now() - %s::interval AND {IS_STEADY}"
_EXPIRE = f"DELETE FROM hookonce.quarantine WHERE source = %s AND {_IS_OLD}"  # noqa: S608  constants
_EXPIRE_OTHERS = f"DELETE FROM hookonce.quarantine WHERE source <> ALL(%s) AND {_IS_OLD}"  # noqa: S608  constants

_NUMBERS = """
SELECT id FROM hookonce.quarantine
WHERE source = %s AND arrived_at >= %s AND arrived_at >= now() - %s::interval ORDER BY id
"""

_LOCKED = """
SELECT id, source, reason, arrived_at, key_id, delivery FROM hookonce.quarantine WHERE id = %s FOR UPDATE SKIP LOCKED
"""

_ABOUT = """
SELECT id, source, reason, arrived_at, key_id, delivery FROM hookonce.quarantine
WHERE source = %s AND reason = %s AND arrived_at BETWEEN %s - interval '1 minute' AND %s + interval '1 minute'
ORDER BY id LIMIT %s
"""

_LET_GO = "DELETE FROM hookonce.quarantine WHERE id = %s"

_HOLDINGS = """
SELECT source, reason, count(*) AS count, sum(octet_length(delivery)) AS bytes, min(arrived_at) AS oldest,
       max(arrived_at) AS newest FROM hookonce.quarantine
GROUP BY source, reason ORDER BY source, reason
"""


def keep(
    connection: psycopg.Connection,
    source: str,
    bounds: Quarantine,
    keyring: Keyring,
    arrivals: Sequence[Arrival],
) -> int:
    """Keep the arrivals that there is room for, in order; return how many there was none for. Committed."""
    with connection.transaction():
        connection.execute(_LOCK, [source])
        connection.execute(_EXPIRE, [source, bounds.time])
        row = connection.execute(_ROOM, {"source": source, "hour": HOUR}).fetchone()
        if row is None:
            raise LookupError("an aggregate gave no row")
        now, *taken = row
        count, size = _room(bounds, taken)
        kept = []
        for arrival in arrivals if count > 0 else ():
            at = now - arrival.age
            text, key = keyring.encrypt(arrival.packed, quarantine_context(source, arrival.reason, at))
            if count > 0 and len(text) <= size:
                kept.append((source, arrival.reason, at, key, text))
                count, size = count - 1, size - len(text)
        with connection.cursor() as cursor:
            cursor.executemany(_KEEP, kept)
    return len(arrivals) - len(kept)


def expire(connection: psycopg.Connection, bounds: Mapping[str, Quarantine]) -> int:
    """Let go of what has outlived its source's time, or the longest there is, for a source without quarantine."""
    gone = connection.execute(_EXPIRE_OTHERS, [list(bounds), MAX_QUARANTINE_TIME]).rowcount
    for source, bound in bounds.items():
        gone += connection.execute(_EXPIRE, [source, bound.time]).rowcount
    return gone


def numbers(connection: psycopg.Connection, source: str, since: datetime, time: timedelta) -> list[int]:
    """Return what is in quarantine and came since then, and within `time`, oldest first."""
    return [row[0] for row in connection.execute(_NUMBERS, [source, since, time])]


def locked(connection: psycopg.Connection, number: int) -> Held | None:
    """Read and lock a delivery, in the caller's transaction; None if it is gone, or somebody else has it locked."""
    row = connection.execute(_LOCKED, [number]).fetchone()
    return Held(*row) if row else None


def kept_about(
    connection: psycopg.Connection, source: str, reason: str, at: datetime, limit: int
) -> list[Held]:
    """Return what is in quarantine of a source, for a reason, and came within a minute of `at`."""
    return [Held(*row) for row in connection.execute(_ABOUT, [source, reason, at, at, limit])]


def let_go(connection: psycopg.Connection, held: Held, who: str, detail: Mapping[str, Any]) -> None:
    """Take a delivery out of quarantine, in the caller's transaction; audited."""
    connection.execute(_LET_GO, [held.id])
    told = {"arrived_at": held.arrived_at.isoformat(), **detail}
    audit_log.note(connection, who, "reverify", f"source {held.source}", told)


def holdings(connection: psycopg.Connection) -> list[Holding]:
    """Return what is in quarantine, by source and reason."""
    return all_as(Holding, connection, _HOLDINGS)


def _room(bounds: Quarantine, taken: Sequence[int]) -> tuple[int, int]:
    """Return how many deliveries and bytes may still be kept: half of the room that was left an hour ago."""
    count, size, lately, size_lately = (int(number) for number in taken)
    deliveries = (bounds.count - (count - lately) + 1) // 2 - lately
    return deliveries, (bounds.size - (size - size_lately)) // 2 - size_lately
