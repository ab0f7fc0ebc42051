"""Says what `hookonce db upgrade` would do to a database now: its steps, about how many rows, and what each one locks.

Rows are those that ANALYZE has counted last, and times are of a small server: a guess, good to a factor of three.
"""

from datetime import timedelta
from typing import Any, NamedTuple

import psycopg

from hookonce.receiver.config.server_urls import schema_of
from hookonce.receiver.ledger.database import engines, former_tables, migrate, schema_version
from hookonce.receiver.ledger.database.live_upgrade import Patience

COPIED_A_SECOND = 50_000
"""Events with their runs."""
INDEXED_A_SECOND = 500_000
"""Events, by all indexes that revision 0004 builds."""
READ_A_SECOND = 500_000
"""Runs, by the index of revision 0024, which holds none of them: five million took 2.4 s, 35 from a cold disk."""
FIRST_WITH_ISSUES = "0024"

_SIZES = """
SELECT greatest(e.reltuples, 0)::bigint, greatest(r.reltuples, 0)::bigint, pg_total_relation_size(r.oid)
FROM pg_class e, pg_class r
WHERE e.oid = to_regclass(%s) AND r.oid = to_regclass(%s)
"""
_LOOK = "SET LOCAL statement_timeout = '10s'"


class PlannedStep(NamedTuple):
    """A step: what it does, and what waits for it or it for others."""

    does: str
    locks: str


class UpgradePlan(NamedTuple):
    """Where the schema is and where it would be, and the steps between; none where there is nothing to do.

    `revision` is None where there is no ledger.
    """

    revision: str | None
    reached: str
    steps: list[PlannedStep]

    @property
    def takes_long(self) -> bool:
        """Whether events are to be copied, or tables moved: more than a matter of moments."""
        return self.revision is not None and self.revision < migrate.FIRST_WITH_A_QUEUE


def plan(url: str, patience: Patience = migrate.USUAL_PATIENCE) -> UpgradePlan:
    """Look, change nothing, and return what an upgrade would do. Raises `ConfigError` as an upgrade does."""
    engine, place = engines.engine(url, name="hookonce migrate"), schema_of(url)
    try:
        with engine.connect() as connection, connection.begin():
            driver = engines.raw(connection)
            driver.execute(_LOOK)
            former = migrate.former_place(driver, place)
            revision = migrate.current(connection, former or place)
            steps = _steps(driver, former or place, revision, patience, is_moved=former is not None)
            return UpgradePlan(revision, max(revision or "", schema_version.REVISION), steps)
    finally:
        engine.dispose()


def _steps(
    driver: psycopg.Connection[Any], place: str, revision: str | None, patience: Patience, *, is_moved: bool
) -> list[PlannedStep]:
    if revision is None:
        return [PlannedStep("make all tables", "nothing: there are none yet")]
    if revision >= migrate.FIRST_WITH_A_QUEUE:
        later = [] if revision >= schema_version.REVISION else [_later_revisions(driver, place, revision)]
        is_done = former_tables.is_contracted(driver)
        return later if is_done else [*later, _contraction(former_tables.in_the_way(driver))]
    events, runs, size = driver.execute(_SIZES, [f'"{place}".events', f'"{place}".runs']).fetchone() or (
        0,
        0,
        0,
    )
    steps = []
    if revision < migrate.LAST_BEFORE_THE_QUEUE:
        steps.append(_revisions(revision, place, events, patience, is_moved=is_moved))
    if not former_tables.is_expanded(driver):
        steps.append(_expansion(patience))
    copied = former_tables.progress(driver) if former_tables.is_expanded(driver) else None
    steps.append(_copy(events, runs, size, copied))
    sessions = former_tables.sessions(driver)
    steps.append(_swap(sessions, patience))
    there = f"{sessions} sessions of hookonce's are connected" if sessions else None
    return [*steps, _contraction(there)]


def _revisions(revision: str, place: str, events: int, patience: Patience, *, is_moved: bool) -> PlannedStep:
    does = f"run the revisions after {revision} up to {migrate.LAST_BEFORE_THE_QUEUE} in one transaction"
    if not is_moved:
        return PlannedStep(
            does, f"tables for a moment; deliveries wait for {_seconds(patience.lock)} at most"
        )
    lasts = _span(events / INDEXED_A_SECOND)
    return PlannedStep(
        f"move the tables of 0.1 out of the schema {place}, and {does}; it builds indexes on about {events:,} events",
        f"all tables for about {lasts}; processes of 0.1 fail from then on, so stop them before",
    )


def _later_revisions(driver: psycopg.Connection[Any], place: str, revision: str) -> PlannedStep:
    does = f"run the revisions after {revision} up to {schema_version.REVISION}: columns and tables, nothing rewritten"
    if revision >= FIRST_WITH_ISSUES:
        return PlannedStep(does, "their tables for a moment")
    (_, runs, _) = driver.execute(_SIZES, [f'"{place}".events', f'"{place}".runs']).fetchone() or (0, 0, 0)
    return PlannedStep(
        f"{does}; it reads about {runs:,} runs for an index",
        f"runs for about {_span(runs / READ_A_SECOND)}: workers wait with the ends of runs, deliveries do not",
    )


def _expansion(patience: Patience) -> PlannedStep:
    return PlannedStep(
        "make the new tables, and have triggers note which events change",
        f"events and runs for a moment; deliveries wait for {_seconds(patience.lock)} at most",
    )


def _copy(events: int, runs: int, size: int, copied: tuple[Any, ...] | None) -> PlannedStep:
    begun = f", of which up to number {copied[0]:,} of {copied[1]:,} is done" if copied else ""
    return PlannedStep(
        f"copy about {events:,} events' states and {runs:,} runs, {former_tables.RANGE:,} events at a time{begun}: "
        f"about {_span(events / COPIED_A_SECOND)}, and {size // 2**20:,} MB of disk at most",
        "nothing that anybody waits for; it can be stopped and goes on next time",
    )


def _swap(sessions: int, patience: Patience) -> PlannedStep:
    waits = (
        f"workers claim nothing for {_seconds(patience.leases)} at most, while runs under way end; then "
        if sessions
        else ""
    )
    return PlannedStep(
        "copy what has changed since, and put the new tables in the place of the former",
        f"{waits}events and runs, most often for less than 0.1 s; workers of before can do nothing from then on",
    )


def _contraction(there: str | None) -> PlannedStep:
    if there:
        return PlannedStep(
            f"leave to a later upgrade what is kept for processes of the version before, since {there}",
            "nothing; `--finish` drops it all the same",
        )
    return PlannedStep("drop what was kept for processes of the version before", "events for a moment")


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > 100 else f"{max(seconds, 1):.0f} s"  # noqa: PLR2004  minutes
