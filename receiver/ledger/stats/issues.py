"""Issues: failures of one handler that fail at one place, with what a person has said of them.

A failed attempt says which issue it is of (`jobs.failures.issues`) and on which release; the statement that ends it
writes both with its failure, and with the outcome of a run that died. Everything else is read from those rows when
somebody looks: when it was seen last, how often, and which runs are dead of it now. So an attempt that succeeds writes
nothing for it, and one that fails locks no row that others wait for.

An issue that is fixed opens itself where a release fails that came after the last one that had failed before.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

import psycopg
from pydantic import Field

from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel, all_as
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats.backlog import MAX_COUNTED
from hookonce.receiver.ledger.withheld import ContentRow, ErrorText

MAX_LISTED = 200
"""Issues that are listed at most."""
MAX_RAISED = 50
"""Issues of which there are alerts at once, at most."""
_LEAST_READ = 500
"""Failures of each issue that a trend is made of, at least, where there are so many."""
NEWS = timedelta(days=1)
"""How long it is news that an issue is there, or failed."""


class IssueState(StrEnum):
    """The state of an issue, as a person has set it."""

    OPEN = "open"
    FIXED = "fixed"
    IGNORED = "ignored"


class Issue(NamedTuple):
    """Which issue a failure is of; `title` quotes nothing of an event: an error's class and its place."""

    id: str
    title: str
    release: str


class IssueRow(ContentRow):
    """Failures of one handler at one place; its dead runs are found and replayed by `issue` of a filter."""

    id: Ours
    handler: Ours
    title: str = Field(description="the error's class, and the place in your code")
    state: IssueState = Field(
        description="`fixed` opens itself when a newer release fails so again, `ignored` at `ignored_until`"
    )
    ignored_until: datetime | None
    reopened_at: datetime | None = Field(description="when it opened itself after it was fixed")
    first_seen: datetime
    first_release: Ours
    last_seen: datetime | None
    last_release: Ours | None
    error: ErrorText = Field(description="text of the newest failure")
    event: Identifier | None = Field(description="whose failure that is")
    failures: int = Field(description=f"failed attempts that are kept; {MAX_COUNTED + 1} means more")
    dead: int = Field(description="runs that are dead of it now; the same")


class RaisedIssue(NamedTuple):
    """An issue that a person should hear of: it is new, or was fixed and failed again (`is_reopened`)."""

    id: str
    handler: str
    title: str
    release: str | None
    is_reopened: bool


class Occurrence(ResponseModel):
    """A failed attempt of an issue."""

    event: Identifier
    attempt: int
    failed_at: datetime
    release: Ours | None


class IssueTrend(NamedTuple):
    """The newest failures of an issue: of how many events, and by hour; `is_complete` unless more are kept."""

    events: int
    is_complete: bool
    hours: Mapping[datetime, int]


OF_TEXT = "left(encode(sha256(convert_to({handler} || E'\\n' || {error}, 'UTF8')), 'hex'), 12)"
"""Which issue a failure is of that has no place in anybody's code, by what is said of it; part of a statement."""

MET = """
    INSERT INTO hookonce.issues (id, handler, title, first_release)
    SELECT DISTINCT ON (issue) issue, handler, title, coalesce(release, '') FROM {failures} WHERE issue IS NOT NULL
    ORDER BY issue ON CONFLICT (id) DO NOTHING
"""
"""Writes down issues that are new; part of a statement with rows of `{failures}`. Known ones are not locked."""
REOPENED = """
    UPDATE hookonce.issues i SET fixed_after = NULL, reopened_at = clock_timestamp()
    FROM {failures} f LEFT JOIN hookonce.releases r ON r.name = f.release
    WHERE i.id = f.issue AND f.release IS NOT NULL AND i.fixed_after < coalesce(r.first_seen, now())
"""
"""Opens what was fixed and fails on a newer release, or on one that was not there yet; part of the same."""
RELEASED = """
    INSERT INTO hookonce.releases (name) SELECT DISTINCT release FROM {failures} WHERE release IS NOT NULL
    ORDER BY release ON CONFLICT DO NOTHING
"""
"""Writes down the release, if no worker has registered it; part of the same."""


class DeadRun(NamedTuple):
    """A dead run, and the issue that its failure is of."""

    event: int
    handler: str
    cycle: int
    started_at: datetime | None
    finished_at: datetime
    issue: str | None
    title: str | None


_DEAD_RUNS = f"""
SELECT r.event, r.handler, r.cycle, r.started_at, r.finished_at, r.issue, i.title
FROM hookonce.runs r LEFT JOIN hookonce.issues i ON i.id = r.issue
WHERE r.status = '{RunStatus.DEAD}' AND r.is_last AND r.handler <> '' ORDER BY r.event DESC, r.handler LIMIT %s
"""  # noqa: S608  constants
_REGISTER = "INSERT INTO hookonce.releases (name) VALUES (%s) ON CONFLICT DO NOTHING"

_STATE = f"""CASE WHEN i.ignored_until > now() THEN '{IssueState.IGNORED}'
                  WHEN i.fixed_after IS NOT NULL THEN '{IssueState.FIXED}' ELSE '{IssueState.OPEN}' END"""
_ROWS = f"""
SELECT id, handler, title, state, ignored_until, reopened_at, first_seen, first_release,
       last_seen, last_release, error, event,
       (SELECT count(*) FROM (SELECT FROM hookonce.failures f WHERE f.issue = found.id LIMIT %(most)s) AS counted)
           AS failures,
       (SELECT count(*) FROM (SELECT FROM hookonce.runs r WHERE r.issue = found.id AND r.is_last LIMIT %(most)s)
        AS counted) AS dead
FROM (
    SELECT i.*, {_STATE} AS state, f.failed_at AS last_seen, f.release AS last_release, f.error, f.event
    FROM hookonce.issues i
         LEFT JOIN LATERAL (SELECT failed_at, release, error, event FROM hookonce.failures
                            WHERE issue = i.id ORDER BY id DESC LIMIT 1) AS f ON true
    WHERE (%(id)s::text IS NULL OR i.id = %(id)s) AND (%(state)s::text IS NULL OR {_STATE} = %(state)s)
          AND (%(handler)s::text IS NULL OR i.handler = %(handler)s)
    ORDER BY f.failed_at DESC NULLS LAST, i.id LIMIT %(limit)s
) AS found ORDER BY last_seen DESC NULLS LAST, id
"""  # noqa: S608  constants
_OCCURRENCES = """
SELECT event, attempt, failed_at, release FROM hookonce.failures WHERE issue = %s ORDER BY id DESC LIMIT %s
"""
_TRENDS = """
SELECT wanted.issue, date_bin('1 hour', f.failed_at, 'epoch') AS hour, count(*), count(DISTINCT f.event)
FROM unnest(%(issues)s::text[]) AS wanted (issue)
     CROSS JOIN LATERAL (SELECT event, failed_at FROM hookonce.failures
                         WHERE issue = wanted.issue ORDER BY id DESC LIMIT %(most)s) AS f
GROUP BY GROUPING SETS ((1), (1, 2)) ORDER BY 1, 2
"""
_IS_DEADLY = (
    """EXISTS (SELECT FROM hookonce.runs r WHERE r.issue = i.id AND r.is_last AND r.status = 'dead')"""
)
_LEFT = f"""({_IS_DEADLY}
    OR EXISTS (SELECT FROM (SELECT event, handler FROM hookonce.failures WHERE issue = i.id ORDER BY id DESC LIMIT 1000)
                            AS newest JOIN hookonce.queue q USING (event, handler)))"""  # noqa: S608  constants
"""Whether events are dead of an issue, or to be tried again after its newest failures; part of a statement."""
# Alerts are events whose handlers may fail too, and would make others. What was over comes again only if events died.
_RAISED = f"""
WITH over AS MATERIALIZED (
    SELECT subject, max(ended_at) AS ended_at FROM hookonce.alerts
    WHERE kind IN ('new_issue', 'reopened_issue') GROUP BY subject
)
SELECT i.id, i.handler, i.title, nullif(f.release, ''), i.reopened_at IS NOT NULL
FROM hookonce.issues i CROSS JOIN LATERAL (SELECT failed_at, release FROM hookonce.failures
                                           WHERE issue = i.id ORDER BY id DESC LIMIT 1) AS f
     LEFT JOIN over ON over.subject = i.id
WHERE {_STATE} = '{IssueState.OPEN}' AND NOT starts_with(i.handler, '{ALERTS_SOURCE}.')
      AND CASE WHEN i.id = ANY(%(known)s)
                    OR (f.failed_at > now() - %(news)s::interval
                        AND coalesce(i.reopened_at, i.first_seen) > now() - %(news)s::interval
                        AND (over.ended_at IS NULL OR over.ended_at < coalesce(i.reopened_at, i.first_seen)
                             OR {_IS_DEADLY})) THEN {_LEFT} ELSE false END
ORDER BY i.id = ANY(%(known)s) DESC, coalesce(i.reopened_at, i.first_seen) DESC, i.id LIMIT {MAX_RAISED}
"""  # noqa: S608  constants
_UNEXPLAINED = f"""
WITH dead AS MATERIALIZED (
    SELECT event, issue FROM hookonce.runs
    WHERE status = '{RunStatus.DEAD}' AND is_last AND handler <> '' AND finished_at > now() - %(within)s::interval
    ORDER BY event DESC LIMIT %(most)s
)
SELECT DISTINCT e.source
FROM dead CROSS JOIN LATERAL (SELECT source FROM hookonce.events WHERE id = dead.event OFFSET 0) AS e
     LEFT JOIN hookonce.issues i ON i.id = dead.issue
WHERE i.id IS NULL OR ({_STATE} = '{IssueState.OPEN}' AND i.id <> ALL(%(told)s))
"""  # noqa: S608  constants
_MARK: Final[Mapping[IssueState, str]] = {
    IssueState.OPEN: "fixed_after = NULL, ignored_until = NULL",
    # Of a release that nobody has announced nothing is known but that it has failed.
    IssueState.FIXED: """ignored_until = NULL, reopened_at = NULL, fixed_after = coalesce(
        (SELECT r.first_seen FROM hookonce.releases r WHERE r.name = (
            SELECT f.release FROM hookonce.failures f WHERE f.issue = i.id ORDER BY f.id DESC LIMIT 1)), now())""",
    IssueState.IGNORED: "fixed_after = NULL, ignored_until = %(until)s",
}
# One that nobody fails of any more goes with the last of its failures; a young one may be about to get its first.
_FORGET = """
DELETE FROM hookonce.issues i
WHERE first_seen < now() - interval '1 hour' AND NOT EXISTS (SELECT FROM hookonce.failures f WHERE f.issue = i.id)
      AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.issue = i.id AND r.is_last AND r.status = 'dead')
"""
_KILLERS = f"""
WITH dead AS MATERIALIZED (
    SELECT event, issue FROM hookonce.runs WHERE status = '{RunStatus.DEAD}' AND is_last
    ORDER BY event DESC LIMIT %(most)s
)
SELECT i.id, i.handler, i.title, count(*)
FROM dead CROSS JOIN LATERAL (SELECT source FROM hookonce.events WHERE id = dead.event OFFSET 0) AS e
     JOIN hookonce.issues i ON i.id = dead.issue
WHERE e.source = %(source)s GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1 LIMIT %(limit)s
"""  # noqa: S608  constants


def register_release(connection: psycopg.Connection, name: str) -> None:
    """Write down that a worker of a release is there, so that it is known which release came after which."""
    with connection.transaction():
        connection.execute(_REGISTER, [name])


def listing(
    connection: psycopg.Connection,
    state: IssueState | None = None,
    handler: str | None = None,
    limit: int = MAX_LISTED,
) -> list[IssueRow]:
    """Return issues, those that failed last first; None takes all states."""
    return _rows(connection, state=state, handler=handler, limit=limit)


def get(connection: psycopg.Connection, issue: str) -> IssueRow | None:
    """Return an issue, or None."""
    return next(iter(_rows(connection, id=issue)), None)


def occurrences(connection: psycopg.Connection, issue: str, limit: int) -> list[Occurrence]:
    """Return the newest failures of an issue."""
    return all_as(Occurrence, connection, _OCCURRENCES, [issue, limit])


def trends(connection: psycopg.Connection, issues: Sequence[str]) -> dict[str, IssueTrend]:
    """Return how often issues failed, by hour; the failures of all of them that are read stay bounded together."""
    most = max(MAX_COUNTED // max(len(issues), 1), _LEAST_READ)
    found: dict[str, IssueTrend] = {}
    hours: dict[str, dict[datetime, int]] = defaultdict(dict)
    for issue, hour, failures, events in connection.execute(_TRENDS, {"issues": list(issues), "most": most}):
        if hour is None:
            found[issue] = IssueTrend(events, failures < most, hours[issue])
        else:
            hours[issue][hour] = failures
    return found


def raised(connection: psycopg.Connection, known: Sequence[str]) -> list[RaisedIssue]:
    """Return the open issues that came or came again within `NEWS`, and those `known`, unless they are over.

    An issue is over when none of its events is dead, or to be tried again.
    """
    rows = connection.execute(_RAISED.encode(), {"news": NEWS, "known": list(known)})
    return [RaisedIssue(*row) for row in rows]


def unexplained(connection: psycopg.Connection, within: timedelta, told: Sequence[str]) -> set[str]:
    """Return the sources whose events died within that time of something else than `told` or marked issues."""
    values = {"within": within, "told": list(told), "most": MAX_COUNTED}
    return {source for (source,) in connection.execute(_UNEXPLAINED.encode(), values)}


def mark(
    connection: psycopg.Connection, issue: str, state: IssueState, who: str, until: datetime | None = None
) -> bool:
    """Update an issue's state; return whether there is such a one. Audited.

    `until` ends what is ignored, and is needed for that.
    """
    query = f"UPDATE hookonce.issues i SET {_MARK[state]} WHERE id = %(id)s"  # noqa: S608  constants
    with connection.transaction():
        if not connection.execute(query.encode(), {"id": issue, "until": until}).rowcount:
            return False
        detail = {"until": until.isoformat()} if until else {}
        audit_log.note(connection, who, f"issue {state}", f"issue {issue}", detail)
        return True


def killers(connection: psycopg.Connection, source: str, limit: int) -> Sequence[tuple[str, str, str, int]]:
    """Return the issues that most of the newest dead runs of a source died of: id, handler, title, how many."""
    values = {"source": source, "limit": limit, "most": MAX_COUNTED}
    return connection.execute(_KILLERS.encode(), values).fetchall()


def newest_dead_runs(connection: psycopg.Connection, limit: int) -> list[DeadRun]:
    """Return the dead runs of the newest events."""
    return [DeadRun(*row) for row in connection.execute(_DEAD_RUNS, [limit])]


def forget(connection: psycopg.Connection) -> None:
    """Delete the issues of which no failure is kept."""
    connection.execute(_FORGET)


def _rows(connection: psycopg.Connection, **wanted: object) -> list[IssueRow]:
    values = {"id": None, "state": None, "handler": None, "limit": 1, "most": MAX_COUNTED + 1, **wanted}
    return all_as(IssueRow, connection, _ROWS, values)
