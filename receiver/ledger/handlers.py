"""The handlers that workers know, as they say themselves at their start and now and then: nobody else can tell.

A run is dead when the largest number of attempts is used up that any worker announces for its handler. In a rolling
deploy these numbers differ: a worker with a smaller one would bury what others still mean to try, so the statement that
ends a failed attempt looks them up. A number that is announced no more is forgotten, and a smaller one takes effect.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.rows import Ours, ResponseModel, all_as

ANNOUNCED_TTL = timedelta(minutes=5)
"""How often it is written down again that a handler is still there."""
NUMBER_HOLDS = 2 * ANNOUNCED_TTL
"""How long a number of attempts holds that is not announced again: a worker does not while it is at a long run."""
LIMITS = "limits"
"""Under which name a handler says its `HandlerLimits`."""
FORGOTTEN_AFTER = timedelta(days=1)
"""Until when a handler is shown that no worker names any more."""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> re.Pattern[str]:
    """Return what matches the types that a handler takes; `*` stands for any text."""
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)


class HandlerLimits(ResponseModel):
    """The limits of a handler's runs, as its worker says; null for what it does not limit."""

    rate: Ours | None = Field(default=None, description="how often it may start, like `100/m`")
    concurrency: int | None = Field(default=None, description="how many runs may be under way at once")
    per: Ours | None = Field(
        default=None, description="`account` or `source`: each is held to these by itself"
    )
    breaker: int | None = Field(default=None, description="after how many failures in a row it is stopped")
    tx: Ours | None = Field(
        default=None, description="`none`: it has no transaction of its own while it runs"
    )
    wait_seconds: float | None = Field(
        default=None, description="how long events wait for one another to be a batch"
    )
    stale: Ours | None = Field(
        default=None, description="`skip` or `flag`: the fate of events that are older than what was done"
    )
    entity: tuple[Ours, ...] | None = Field(
        default=None, description="places of the object that an event is about"
    )
    version: Ours | None = Field(default=None, description="the place of that object's version")
    awaits: dict[str, tuple[Ours, Ours, Ours]] | None = Field(
        default=None, description="events that it may wait for, by name: source, type, place of the value"
    )

    def words(self) -> Iterator[str]:
        """Yield each as one says it: `100/m`, `3 at once`, `per account`."""
        if self.rate:
            yield self.rate
        if self.concurrency:
            yield f"{self.concurrency} at once"
        if self.per:
            yield f"per {self.per}"
        if self.breaker:
            yield f"breaker at {self.breaker}"
        if self.tx:
            yield f'tx="{self.tx}"'
        if self.wait_seconds:
            yield f"waits {self.wait_seconds:g} s"
        if self.stale:
            yield f'stale="{self.stale}"'
        if self.awaits:
            yield f"awaits {', '.join(self.awaits)}"


class KnownHandler(ResponseModel):
    """A pattern that a handler takes: a source or a provider, and a pattern of types; as a worker last announced it."""

    handler: Ours
    place: Ours
    pattern: Ours
    batch: int | None = Field(description="how many events it takes at once; null if it takes one")
    attempts: int
    timeout_seconds: float
    announced_at: datetime
    limits: HandlerLimits


_ANNOUNCE = """
INSERT INTO hookonce.handlers (handler, place, pattern, attempts, timeout, batch)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::int[], %s::interval[], %s::int[]) AS t ORDER BY 1, 2, 3
ON CONFLICT (handler, place, pattern)
DO UPDATE SET attempts = excluded.attempts, timeout = excluded.timeout, batch = excluded.batch,
              announced_at = now()
WHERE handlers.announced_at NOT BETWEEN now() - %s::interval AND now() OR handlers.attempts <> excluded.attempts
      OR handlers.timeout <> excluded.timeout OR handlers.batch IS DISTINCT FROM excluded.batch
"""
# `models` holds whatever a handler says of itself in JSON: `takes` and `gives` of a command, and `limits`.
_DESCRIBE = """
UPDATE hookonce.handlers SET models = t.models::json
FROM unnest(%s::text[], %s::text[]) AS t (handler, models)
WHERE handlers.handler = t.handler AND handlers.models::text IS DISTINCT FROM t.models
"""
_MODELS = "SELECT handler, models FROM hookonce.handlers WHERE handler = ANY(%s) AND models IS NOT NULL"
_AWAIT = """
INSERT INTO hookonce.awaited (source, type, place)
SELECT DISTINCT place->>0, place->>1, place->>2
FROM unnest(%s::text[]) AS t (models), json_each(t.models::json->'limits'->'awaits') AS a (name, place) ORDER BY 1, 2, 3
ON CONFLICT DO NOTHING
"""
# What is declared no more is noted no more: once it is again, it is noted since then.
_FORGET_AWAITED = """
DELETE FROM hookonce.awaited WHERE (source, type, place) NOT IN (
    SELECT a.place->>0, a.place->>1, a.place->>2
    FROM hookonce.handlers, json_each(models->'limits'->'awaits') AS a (name, place))
"""
_FORGET = "DELETE FROM hookonce.handlers WHERE announced_at < now() - %s::interval"
# A time in the future is from before the database's clock was set back: the number must not hold until then.
_IS_ALIVE = "announced_at BETWEEN now() - %s::interval AND now() + interval '1 minute'"
_ANNOUNCE_NUMBERS = f"""
INSERT INTO hookonce.handler_attempts AS known (handler, attempts)
SELECT DISTINCT * FROM unnest(%s::text[], %s::int[]) AS t (handler, attempts) ORDER BY 1, 2
ON CONFLICT (handler, attempts) DO UPDATE SET announced_at = now() WHERE NOT known.{_IS_ALIVE}
"""  # noqa: S608  a constant
_FORGET_NUMBERS = f"""
DELETE FROM hookonce.handler_attempts WHERE (handler, attempts) IN (
    SELECT handler, attempts FROM hookonce.handler_attempts WHERE NOT {_IS_ALIVE} FOR UPDATE SKIP LOCKED)
"""  # noqa: S608  a constant
MOST_ANNOUNCED = f"""(SELECT max(known.attempts) FROM hookonce.handler_attempts known
    WHERE known.handler = {{handler}} AND known.{_IS_ALIVE})""".replace(  # noqa: S608  constants
    "%s", f"'{NUMBER_HOLDS.total_seconds():g} seconds'"
)
"""The largest number of attempts that a worker which is alive announces for a `{handler}`: a part of a statement."""
_ANNOUNCED = """
SELECT handler, place, pattern, attempts, extract(epoch FROM timeout)::float AS timeout_seconds, batch, announced_at,
       coalesce(models->'limits', '{}') AS limits
FROM hookonce.handlers ORDER BY handler, place, pattern
"""

Row = tuple[str, str, str, int, timedelta, int | None]


def register_handlers(
    connection: psycopg.Connection,
    rows: Iterable[Row],
    declarations: Mapping[str, str | None] = MappingProxyType({}),
) -> None:
    """Write down handlers: (name, place, pattern, attempts, timeout, most events in a batch).

    `declarations`: by name, what else they say of themselves, as JSON: `takes` and `gives` of a command, `limits`.
    """
    known = {row[:3]: row for row in rows}
    columns = [list(column) for column in zip(*known.values(), strict=True)]
    with connection.transaction():
        if columns:
            connection.execute(_ANNOUNCE, [*columns, ANNOUNCED_TTL])
            connection.execute(_ANNOUNCE_NUMBERS, [columns[0], columns[3], ANNOUNCED_TTL])
        if declarations:
            connection.execute(_DESCRIBE, [list(declarations), list(declarations.values())])
        connection.execute(_FORGET, [FORGOTTEN_AFTER])
        connection.execute(_FORGET_AWAITED)
        connection.execute(_AWAIT, [list(declarations.values())])
        connection.execute(_FORGET_NUMBERS, [NUMBER_HOLDS])


def models_of(connection: psycopg.Connection, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what the handlers of commands take and give (JSON Schema), by name, as far as workers have said so."""
    said: dict[str, dict[str, Any]] = dict(connection.execute(_MODELS, [list(names)]).fetchall())
    return {
        name: {role: schema for role, schema in each.items() if role != LIMITS} for name, each in said.items()
    }


def known_handlers(connection: psycopg.Connection) -> list[KnownHandler]:
    """Return what workers announced lately, by handler."""
    return all_as(KnownHandler, connection, _ANNOUNCED)


def limits_of(known: Iterable[KnownHandler]) -> dict[str, HandlerLimits]:
    """Return by name what handlers are held to, whatever they take."""
    return {each.handler: each.limits for each in known}
