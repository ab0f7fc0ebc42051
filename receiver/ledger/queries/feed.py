"""Events in the order of the ledger, for whoever follows it from elsewhere: a page behind a position, by one statement.

Ids are given out before their transactions commit, so that a smaller one may turn up late; a reader that had gone past
it would never see it. A transaction that inserts events holds a lock on the table from before it takes an id until its
end. So an id is *settled* once each transaction that held the lock when it was the newest is seen to have ended, and
only what a later statement reads is given. (The oldest open transaction id is not enough: one is given only with the
first row that is written, and that may wait for a twin with its id in hand.)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.ledger import id_at_time
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.id_ranges import CLOCK_SLACK
from hookonce.receiver.ledger.states import WHY_UNREADABLE

FEED_PAGE: Final = 500
FEED_BYTES: Final = 2_000_000
"""Bytes of bodies on a page, unless a single one is longer."""
FEED_IDS: Final = 25_000
"""Ids that one page looks through, however few of them match."""
LEFT_OUT: Final = (COMMAND, ALERTS_SOURCE)
"""Providers whose events stay where they are: what a client asked of this inbox, and what it tells its operators."""

POSITION: Final = r"[0-9a-f]{32}(\.[0-9]{1,18}){4}\.[-0-9/_]{0,16000}"

_EVENT = f"""e.id, e.source, e.provider, e.event_id, e.type, e.account, e.fingerprint, e.id_is_signed, e.received_at,
e.occurred_at, e.is_test, e.keep_body,
{WHY_UNREADABLE} AS unreadable"""
_BODY = "b.url, b.headers, b.body, b.key_id, coalesce(b.is_element, false) AS is_element, b.url IS NOT NULL AS has_body"
_BODY_OF = """LEFT JOIN LATERAL (
        SELECT * FROM hookonce.bodies k WHERE k.event = e.id AND k.received_at = e.received_at OFFSET 0) AS b ON true"""

_HORIZON = """
    SELECT (SELECT id FROM hookonce.ledger) AS ledger,
           (SELECT coalesce(max(id), 0) FROM hookonce.events) AS newest,
           (SELECT received_at FROM hookonce.events ORDER BY id DESC LIMIT 1) AS newest_at, now() AS at,
           ARRAY(SELECT DISTINCT l.virtualtransaction FROM pg_locks l
                 WHERE l.locktype = 'relation' AND l.relation = 'hookonce.events'::regclass
                       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                       AND l.mode = 'RowExclusiveLock' AND l.granted) AS writers"""

_BEFORE = "SELECT received_at FROM hookonce.events WHERE id <= %(after)s ORDER BY id DESC LIMIT 1"
_OLDEST = "SELECT received_at FROM hookonce.events ORDER BY id LIMIT 1"

_PAGE = f"""
WITH horizon AS MATERIALIZED ({_HORIZON}
), page AS MATERIALIZED (
    SELECT * FROM hookonce.events
    WHERE {{matches}} AND provider <> ALL(%(left_out)s) AND id > %(after)s AND id <= %(until)s
    ORDER BY id LIMIT %(limit)s
), measured AS (
    SELECT {_EVENT}, {_BODY}, sum(octet_length(b.body)) OVER (ORDER BY e.id) AS bytes
    FROM page e {_BODY_OF}
)
SELECT horizon.*, (SELECT count(*) FROM page) AS found, ({_BEFORE}) AS before_at, measured.*
FROM horizon LEFT JOIN measured
     ON bytes IS NULL OR bytes <= %(bytes)s OR measured.id = (SELECT min(id) FROM page)
ORDER BY measured.id
"""  # noqa: S608  constants

_ONE = f"""
SELECT {_EVENT}, {_BODY} FROM (
    SELECT * FROM hookonce.events
    WHERE {{matches}} AND id = %(event)s AND provider <> ALL(%(left_out)s)) AS e {_BODY_OF}
"""  # noqa: S608  constants


class OtherLedger(Exception):  # noqa: N818  a state of the world
    """A position is of another ledger, or of one that was set back since; the text says which."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far somebody has come in a ledger.

    Events up to the id `after` were given, and up to `settled` none can turn up any more. `newest` will be settled once
    the transactions `writers` have ended. All up to `after` came until `at`, in seconds since 1970: a ledger in which
    something came later is one that was set back, and took other events under the same ids.
    """

    ledger: str
    after: int
    settled: int
    newest: int
    at: int
    writers: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read what `str` gave. Raises: ValueError."""
        if not re.fullmatch(POSITION, text):
            raise ValueError("expected a cursor as it was given, unchanged")
        ledger, *numbers, writers = text.split(".")
        after, settled, newest, at = map(int, numbers)
        return cls(ledger, after, settled, newest, at, tuple(filter(None, writers.split("_"))))

    def __str__(self) -> str:
        numbers = f"{self.after}.{self.settled}.{self.newest}.{self.at}"
        return f"{self.ledger}.{numbers}.{'_'.join(self.writers)}"

    def check(self, ledger: str, newest: int, before_at: datetime | None) -> None:
        """Raise `OtherLedger` unless it is of a ledger that has the id, ends there and has before it what came then."""
        if self.ledger != ledger:
            raise OtherLedger("the cursor is of another ledger")
        if 0 < newest < self.after:
            raise OtherLedger("the ledger was set back since: it ends before the cursor")
        if before_at is not None and int(before_at.timestamp()) > self.at:
            raise OtherLedger("the ledger was set back since: it has other events before the cursor")


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Rows of events with their bodies, by id; `behind` is how many are left at most, up to `newest_at`."""

    rows: list[dict[str, Any]]
    position: Position
    behind: int
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class Begin:
    """The position at which a reader begins, and when the ledger's oldest event came; None if it has none."""

    position: Position
    oldest_at: datetime | None


def begin(connection: psycopg.Connection, since: datetime | None, position: Position | None) -> Begin:
    """Return where to begin: at a position, or with what came since, or with what comes from now on.

    Raises: `OtherLedger`.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        horizon = cursor.execute(_HORIZON.encode()).fetchone() or {}
    ledger, newest = horizon["ledger"].hex, horizon["newest"]
    oldest = connection.execute(_OLDEST).fetchone()
    if position is not None:
        before = connection.execute(_BEFORE, {"after": position.after}).fetchone()
        position.check(ledger, newest, before[0] if before else None)
    else:
        after = newest if since is None else id_at_time.first_since(connection, _earlier(since)) - 1
        position = Position(ledger, after, after, newest, _moment(horizon), tuple(horizon["writers"]))
    return Begin(position, oldest[0] if oldest else None)


def page(connection: psycopg.Connection, wanted: Filter, position: Position) -> FeedPage:
    """Return the next events behind a position, by one statement; maybe none, though there are some further on.

    Raises: `OtherLedger`.
    """
    until = min(position.settled, position.after + FEED_IDS)
    asked = wanted.parameters | {
        "left_out": list(LEFT_OUT),
        "after": position.after,
        "until": until,
        "limit": FEED_PAGE,
        "bytes": FEED_BYTES,
    }
    query = _PAGE.format(matches=event_filter.matches(wanted)).encode()
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(query, asked, prepare=False).fetchall()
    first = rows[0]
    position.check(first["ledger"].hex, first["newest"], first["before_at"])
    shown = [row for row in rows if row["id"] is not None]
    is_cut = first["found"] == FEED_PAGE or len(shown) < first["found"]
    after = shown[-1]["id"] if is_cut and shown else max(until, position.after)
    settled, newest, writers = _settle(position, first["newest"], first["writers"])
    following = Position(position.ledger, after, settled, newest, _moment(first), writers)
    return FeedPage(shown, following, max(first["newest"] - after, 0), first["newest_at"])


def one(connection: psycopg.Connection, wanted: Filter, event: int) -> dict[str, Any] | None:
    """Return the row of one event with its body, whenever it came; None where it is not wanted, or never leaves."""
    wanted = replace(wanted, since=None)
    asked = wanted.parameters | {"event": event, "left_out": list(LEFT_OUT)}
    query = _ONE.format(matches=event_filter.matches(wanted)).encode()
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, asked, prepare=False).fetchone()


def _settle(position: Position, newest: int, writers: list[str]) -> tuple[int, int, tuple[str, ...]]:
    """Return `settled`, `newest` and `writers` of the position that follows."""
    if not writers:
        return max(newest, position.settled), newest, ()
    still = tuple(each for each in position.writers if each in writers)
    if still:
        return position.settled, position.newest, still
    return max(position.newest, position.settled), newest, tuple(writers)


def _moment(horizon: Mapping[str, Any]) -> int:
    """Return until when the events came that a statement has seen, also where the clock was set back since."""
    return int(max(horizon["at"], horizon["newest_at"] or horizon["at"]).timestamp())


def _earlier(at: datetime) -> datetime:
    try:
        return at - CLOCK_SLACK
    except OverflowError:
        return at


def filter_of(said: Mapping[str, Any]) -> Filter:
    """Return a filter that was kept as JSON: `source`, `type` and `since`."""
    since = said.get("since")
    return Filter(
        source=said.get("source"),
        type=said.get("type"),
        since=datetime.fromisoformat(since) if since else None,
    )


LASTS: Final = timedelta(hours=24)
"""How long a reader may go on under one note of the audit."""
_KEPT = """
SELECT detail FROM hookonce.audit WHERE id = %s AND who = %s AND action = 'pull' AND at > now() - %s
"""


def allowed(connection: psycopg.Connection, who: str, number: int) -> Filter | None:
    """Return what a note of the audit lets somebody pull; None unless there is such a one, and it is not too old."""
    row = connection.execute(_KEPT, [number, who, LASTS]).fetchone()
    return filter_of(row[0]["filter"]) if row else None
