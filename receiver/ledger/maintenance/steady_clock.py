"""Whether what deletes by age may go by the clock: a sender's retry of what is pruned would be handled again.

A machine that boots with a wrong clock, or a server whose clock leaps, makes everything look old. So the sweep stores
when it has looked (`hookonce.clock`). A look more than `LEAP` away from the one before, in either direction, or a
database that is more than `SKEW` away from the host, holds pruning until the clock has run steadily for `LEAP`, or a
person trusts it (`hookonce prune --trust-clock`). A machine that was off for a week prunes a day later.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import psycopg

from hookonce.receiver.ledger.access import audit_log

log = logging.getLogger(__name__)

LEAP: Final = timedelta(days=1)
SKEW: Final = timedelta(hours=1)


def _seconds_from(moment: str) -> str:
    return f"abs(extract(epoch FROM clock_timestamp() - {moment}))"


_LOOK = f"""
INSERT INTO hookonce.clock AS c (looked_at, held_since)
SELECT clock_timestamp(), CASE WHEN {_seconds_from("%(host)s")} > %(skew)s THEN clock_timestamp() END
ON CONFLICT (is_one) DO UPDATE SET looked_at = excluded.looked_at, held_since = CASE
    WHEN {_seconds_from("%(host)s")} > %(skew)s OR {_seconds_from("c.looked_at")} > %(leap)s THEN excluded.looked_at
    WHEN {_seconds_from("c.held_since")} < %(leap)s THEN c.held_since END
RETURNING looked_at, held_since
"""
_TRUST = "UPDATE hookonce.clock SET looked_at = clock_timestamp(), held_since = NULL"
_HELD = "SELECT held_since FROM hookonce.clock"

IS_STEADY: Final = f"""NOT EXISTS (
    SELECT FROM hookonce.clock AS c
    WHERE c.held_since IS NOT NULL OR {_seconds_from("c.looked_at")} > {LEAP.total_seconds():.0f})"""
"""SQL: the clock has not leapt since the sweep looked last, and pruning is not held."""


class Look(NamedTuple):
    """The time by the database's clock, and since when pruning is held, if it is."""

    now: datetime
    held_since: datetime | None


class ClockHeld(Exception):  # noqa: N818  a state of the ledger
    """Nothing may be pruned for now; the text says why, and what to do."""


def _host_time() -> datetime:
    return datetime.now(UTC)


def look(connection: psycopg.Connection, host: Callable[[], datetime] = _host_time) -> Look:
    """Look at the clock, and store the look; committed. A hold that begins is logged."""
    asked = {"host": host(), "skew": SKEW.total_seconds(), "leap": LEAP.total_seconds()}
    with connection.transaction():
        was_held = held_since(connection)
        row = connection.execute(_LOOK, asked).fetchone()
    if row is None:
        raise LookupError("an upsert gave no row")
    found = Look(*row)
    if found.held_since and not was_held:
        log.warning("nothing is pruned: %s", why(found.held_since))
    return found


def held_since(connection: psycopg.Connection) -> datetime | None:
    """Return since when pruning is held, by the database's clock."""
    row = connection.execute(_HELD).fetchone()
    return row[0] if row else None


def why(since: datetime) -> str:
    """Return what a person has to know of a hold."""
    return (
        f"the clock of the database or of the host has leapt, as seen at {since:%Y-%m-%d %H:%M} UTC; pruning goes on "
        "once both have run steadily for a day, or at once by `hookonce prune --trust-clock` if they are right now"
    )


def trust(connection: psycopg.Connection, who: str) -> None:
    """Take the clock for right, since a person says so; audited."""
    with connection.transaction():
        connection.execute(_TRUST)
        audit_log.note(connection, who, "trust clock", "ledger", {})
