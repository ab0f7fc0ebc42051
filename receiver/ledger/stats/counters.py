"""Counts of what leaves no row: repetitions, conflicts, leases that were lost, errors of Redis, keys of requests.

They are rows of `hookonce.activity` too: a sum since ever for `/metrics`, and minutes for alerts. `source` is whatever
is counted by, `what` the kind, and after a dot its detail:

    conflict                a delivery with another body under a known id
    hit                     a repetition that the window knew, so that it cost no insert
    met.<status>            the status of the event that a repetition met
    type.<event type>       repetitions by type; `MAX_TYPES` of a source, the rest without a type
    recovered.again|dead    a lease that had run out was found, and the run leased again, or buried
    refused                 an attempt that could not be ended, because its lease was somebody else's by then; these two
                            count a batch once for each of its sources
    recovered-run.<same>    the same, by the handler of the run; a batch counts once
    redis.<phase>           an error of Redis, by what it was asked for; counted by no source
    unreadable              a genuine event that its adapter could not read
    key.<outcome>           a request under a key, by operation (`receiver.idempotency.counted`)
    ended.<status>          a run that ended, by handler; `receiver.ledger.stats.run_durations` counts these, and
    attempts, retries       how many attempts it had, and how many of them came after the first
    stale                   a run that was skipped, by handler, since a newer version was done; counted there, too
    when-failed             an event on which the `when` of a forward failed, by handler; counted there, too
    unguarded               an event without a version that can be read, by the handler with `stale=` that took it

What became of batches is counted by handler in a table of its own, in the transactions that end them.

How many rows there may be depends on the configuration and the code, never on what strangers send.
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import psycopg
from pydantic import Field

from hookonce.receiver.ledger.rows import Ours, all_as
from hookonce.receiver.ledger.states import Waits
from hookonce.receiver.ledger.stats import activity
from hookonce.receiver.ledger.withheld import ContentRow, ErrorText


class Kind(StrEnum):
    """The kind of a count."""

    CONFLICT = "conflict"
    WINDOW_HIT = "hit"
    MET = "met"
    TYPE = "type"
    RECOVERED = "recovered"
    RECOVERED_RUN = "recovered-run"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    REDIS_ERROR = "redis"
    KEY = "key"
    ENDED = "ended"
    ATTEMPTS = "attempts"
    RETRIES = "retries"
    STALE = "stale"
    UNGUARDED = "unguarded"
    WHEN_FAILED = "when-failed"


class Tally(NamedTuple):
    """A count: by `subject` (a source, a handler, an operation, or nothing), in `detail`."""

    kind: Kind
    subject: str = ""
    detail: str = ""

    @property
    def what(self) -> str:
        """How the table calls it."""
        return f"{self.kind}.{self.detail}" if self.detail else str(self.kind)


class BatchFigures(ContentRow):
    """The outcomes of the batches of a handler that takes many events at once."""

    handler: Ours
    batches: int = Field(description="that succeeded")
    events: int = Field(description="in these")
    halvings: int = Field(description="batches that were split since they failed, or their worker died")
    size: int | None = Field(
        description="events of the smallest part that is to be tried by itself; null if there is none"
    )
    waiting: int = Field(description="parts that are to be tried by themselves")
    error: ErrorText = Field(description="by which they failed")


MAX_TYPES = 30
"""Event types of a source that are told apart; those that came again first."""
MAX_TYPE_LENGTH = 100

_TYPES = "SELECT source, what FROM hookonce.activity WHERE minutes = 0 AND source = ANY(%s) AND what LIKE 'type.%%'"
_TOTALS = """
SELECT split_part(what, '.', 1), source, what, count FROM hookonce.activity
WHERE minutes = 0 AND split_part(what, '.', 1) = ANY(%s) ORDER BY source, what
"""
_COUNT_BATCH = """
INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings) VALUES (%s, 1, %s, 0)
ON CONFLICT (handler) DO UPDATE SET batches = c.batches + 1, events = c.events + excluded.events
"""
_COUNT_HALVING = """
INSERT INTO hookonce.batch_counts AS c (handler, batches, events, halvings, error) VALUES (%s, 0, 0, 1, %s)
ON CONFLICT (handler) DO UPDATE SET halvings = c.halvings + 1, error = excluded.error
"""
_BATCH_FIGURES = f"""
SELECT handler, coalesce(c.batches, 0) AS batches, coalesce(c.events, 0) AS events,
       coalesce(c.halvings, 0) AS halvings, g.size, coalesce(g.waiting, 0) AS waiting,
       CASE WHEN g.waiting > 0 THEN c.error END AS error
FROM hookonce.batch_counts c FULL JOIN (
    SELECT handler, min(size) AS size, count(*) AS waiting FROM (
        SELECT waiting_handler AS handler, count(*) AS size FROM hookonce.queue
        WHERE waits > '{Waits.BATCH}:' AND waits < '{Waits.BATCH};' AND token IS NULL
        GROUP BY waits, waiting_handler) AS parts
    GROUP BY handler) AS g USING (handler)
ORDER BY handler
"""  # noqa: S608  constants


def add(connection: psycopg.Connection | psycopg.Cursor[Any], counts: Mapping[Tally, int]) -> None:
    """Add to the counts of this minute, and to those since ever; one statement."""
    activity.add(connection, {(tally.subject, tally.what): number for tally, number in counts.items()})


def add_types(connection: psycopg.Connection, counts: Mapping[tuple[str, str], int]) -> None:
    """Add repetitions by (source, type); what is one type too many for its source is counted without it."""
    sources = sorted({source for source, _ in counts})
    known: dict[str, set[str]] = {source: set() for source in sources}
    for source, what in connection.execute(_TYPES, [sources]):
        known[source].add(what)
    added: Counter[Tally] = Counter()
    for (source, kind), number in counts.items():
        tally = Tally(Kind.TYPE, source, kind[:MAX_TYPE_LENGTH])
        if tally.what not in known[source]:
            if len(known[source]) < MAX_TYPES:
                known[source].add(tally.what)
            else:
                tally = Tally(Kind.TYPE, source)
        added[tally] += number
    add(connection, added)


def totals(connection: psycopg.Connection) -> dict[Tally, int]:
    """Return the counts since ever."""
    rows = connection.execute(_TOTALS, [list(Kind)])
    return {Tally(Kind(kind), source, what[len(kind) + 1 :]): count for kind, source, what, count in rows}


def batch_figures(connection: psycopg.Connection) -> list[BatchFigures]:
    """Return what became of batches, by handler."""
    return all_as(BatchFigures, connection, _BATCH_FIGURES)


def count_batch(connection: psycopg.Connection, handler: str, events: int) -> None:
    """Count a batch whose end does not do so: of one event, or in Django's transaction."""
    connection.execute(_COUNT_BATCH, [handler, events], prepare=True)


def count_halving(connection: psycopg.Connection, handler: str, error: str | None) -> None:
    """Count a batch that is taken apart into halves, by an error if that is known."""
    connection.execute(_COUNT_HALVING, [handler, error])
