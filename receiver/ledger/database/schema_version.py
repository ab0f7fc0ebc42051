"""The revision of a ledger, compared with the one that this version needs.

The id of the first revision is a digest of what it makes, and the ids of later revisions begin with it
(`<digest>.2`). So a ledger that any other code has made is never taken for one of ours, and a ledger that a later
release has upgraded is known as such: its migrations only add what older code can ignore.
"""

import re
from typing import Any

import psycopg

from hookonce.receiver.ledger.database import schema, tables

FIRST = tables.DIGEST
REVISION = FIRST
"""The last revision of this version."""

_LEDGERS = """
SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'hookonce_version' AND c.relkind = 'r' ORDER BY 1
"""
_REVISION = "SELECT version_num FROM hookonce.hookonce_version"
_OURS = re.compile(rf"{FIRST}(?:\.(\d+))?")
_SEARCH_PATH = "public"
"""Where the ledgers of the first commits lay, which had no schema of their own."""


class SchemaBehind(Exception):  # noqa: N818  a state of the world that one command mends
    """The database has no ledger, or one that is older than this code; `hookonce db upgrade` mends it."""


class UnreleasedLedger(SchemaBehind):
    """The database has a ledger that code of no release has made; no command changes it."""


def found(connection: psycopg.Connection[Any]) -> str | None:
    """Return the revision of the ledger in the schema of a connection; None where there is none.

    Raises: `UnreleasedLedger`, also where one lies in `public` and none in the schema: an empty ledger beside it would
    take its events for new.
    """
    places = _places(connection)
    place = schema.of(connection)
    if place in places:
        revision = _revision(connection, place)
    elif _SEARCH_PATH in places and not _is_ours(_revision(connection, _SEARCH_PATH)):
        place, revision = _SEARCH_PATH, _revision(connection, _SEARCH_PATH)
    else:
        return None
    if _is_ours(revision):
        return revision
    raise UnreleasedLedger(
        f"the ledger in the schema {place} of the database '{connection.info.dbname}' is of an unreleased version "
        f"(revision {revision or 'unknown'}, expected {REVISION}); save its events by that version's own `hookonce "
        "events export`, let DATABASE_URL or HOOKONCE_SCHEMA lead to a new ledger, and bring the events there by "
        "`hookonce events import --no-run`, which holds them"
    )


def is_behind(revision: str) -> bool:
    """Return whether a revision that was `found` is older than this version's."""
    return _number(revision) < _number(REVISION)


def require_schema(connection: psycopg.Connection[Any]) -> None:
    """Raise `SchemaBehind` unless a database has at least this version's schema."""
    revision = found(connection)
    name = connection.info.dbname
    if revision is None:
        others = ", ".join(_places(connection))
        there = f"one lies in {others}" if others else "nor in any other"
        raise SchemaBehind(
            f"the database '{name}' has no ledger in the schema {schema.of(connection)}, {there}; this version needs "
            f"revision {REVISION}: run `hookonce db upgrade`, or set DATABASE_URL to where the ledger is"
        )
    if is_behind(revision):
        raise SchemaBehind(
            f"the ledger in the database '{name}' is at revision {revision}, this version needs {REVISION}; "
            "run `hookonce db upgrade`"
        )


def _places(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the schemas of the database in which ledgers lie."""
    return [name for (name,) in connection.execute(_LEDGERS)]


def _revision(connection: psycopg.Connection[Any], place: str) -> str:
    row = schema.cursor(connection, place).execute(_REVISION).fetchone()
    return str(row[0]) if row else ""


def _is_ours(revision: str) -> bool:
    return _OURS.fullmatch(revision) is not None


def _number(revision: str) -> int:
    of_ours = _OURS.fullmatch(revision)
    return int(of_ours[1] or 1) if of_ours else 0
