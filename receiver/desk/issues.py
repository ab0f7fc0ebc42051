"""Issues: dead and failing runs by handler and the place where they fail, and what a person has said of each."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.dead_letters import discard_issue
from hookonce.receiver.desk.filters import Hinted, hint
from hookonce.receiver.desk.models import IssueId, Limit, RequestModel, Text, Time
from hookonce.receiver.desk.refusals import Conflict, Contradictory, NotFound
from hookonce.receiver.desk.registry import Desk, action, looks_at
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import failures
from hookonce.receiver.ledger.queries.failures import Failure
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.stats.issues import MAX_LISTED, IssueRow, IssueState, IssueTrend, Occurrence
from hookonce.receiver.ledger.withheld import AS_SHOWN

_MAX_OCCURRENCES = 20
_MAX_ATTEMPTS = 200
"""Newest failures that are grouped by event."""


class IssuesQuery(RequestModel):
    """Which issues."""

    state: Literal["open", "fixed", "ignored", "all"] = Field("open", description="only in this state")
    handler: Text | None = Field(None, description="only of this handler")
    limit: Limit = Field(50, description="how many rows at most")


class IssuePath(RequestModel):
    """An issue."""

    issue: IssueId


class IssueMark(RequestModel):
    """The new state of an issue: `ignored` needs `until`."""

    state: Annotated[IssueState, Field(strict=False)]
    until: Time | None = Field(None, description="with `ignored`: the end of it, in the future")
    discard: bool = Field(default=False, description="discard its dead events, too; a replay undoes that")


class Issues(Hinted):
    """Issues, those that failed last first."""

    data: list[IssueRow]
    is_complete: bool = Field(description="false where there are more than were asked for")


class FullIssue(IssueRow):
    """An issue with its newest failures."""

    latest: Failure | None = Field(description="the newest failed attempt; null where none is kept")
    occurrences: list[Occurrence]


@action(scope=Scope.READ)
def list_issues(desk: Desk, asked: IssuesQuery) -> Issues:
    """List what fails: one issue for each handler and place, with first and last seen, how often, and how many died."""
    state = None if asked.state == "all" else IssueState(asked.state)
    found = issues.listing(desk.connection, state, asked.handler, min(asked.limit, MAX_LISTED) + 1)
    return Issues(
        data=handed_out(desk, "issues", found[: asked.limit]),
        is_complete=len(found) <= asked.limit,
        hint=hint(desk, asked, found),
    )


@action(scope=Scope.READ)
def get_issue(desk: Desk, which: IssuePath) -> FullIssue:
    """Show an issue, and its newest failures."""
    found = issues.get(desk.connection, which.issue)
    if found is None:
        raise NotFound(f"no issue has the id {which.issue}; `hookonce issues list --state all` shows all")
    subject = f"issue {which.issue}"
    (issue,) = handed_out(desk, subject, [found])
    latest = failures.latest_of_issue(desk.connection, which.issue, desk.settings.keyring)
    more = {
        "latest": handed_out(desk, subject, [latest])[0] if latest else None,
        "occurrences": issues.occurrences(desk.connection, which.issue, _MAX_OCCURRENCES),
    }
    return FullIssue.model_validate(dict(issue) | more, context=AS_SHOWN)


@action(scope=Scope.REPLAY, looks=looks_at(get_issue))
def mark_issue(desk: Desk, which: IssuePath, asked: IssueMark) -> FullIssue:
    """Update an issue's state: fixed, ignored until a time, or open."""
    is_ignored = asked.state == IssueState.IGNORED
    if is_ignored and (asked.until is None or asked.until <= datetime.now(UTC)):
        raise Contradictory("an issue is ignored until a time in the future; expected one, or a span above 0")
    if not is_ignored and asked.until is not None:
        raise Conflict("`until` is for `ignored`")
    if asked.discard and asked.state == IssueState.OPEN:
        raise Conflict("`discard` is for an issue that is `fixed` or `ignored`")
    issues.mark(desk.connection, which.issue, IssueState(asked.state), desk.who, asked.until)
    if asked.discard:
        discard_issue(desk, which.issue)
    return get_issue.function(desk, which)


def trends_of(desk: Desk, numbers: Sequence[str]) -> dict[str, IssueTrend]:
    """Return how often issues failed by hour, and how many events they affect; none of an issue without failures."""
    desk.require(Scope.READ)
    return issues.trends(desk.connection, numbers)


def affected_events(desk: Desk, number: str) -> list[tuple[int, list[Occurrence]]]:
    """Return the events that an issue affected last, each with its failed attempts, the newest first."""
    desk.require(Scope.READ)
    found: dict[int, list[Occurrence]] = {}
    for each in issues.occurrences(desk.connection, number, _MAX_ATTEMPTS):
        found.setdefault(each.event, []).append(each)
    return list(found.items())[:_MAX_OCCURRENCES]


def discard_dead_of(desk: Desk, which: IssuePath) -> None:
    """Discard the dead events of an issue; its state stays as it is."""
    get_issue(desk, which=which)
    discard_issue(desk, which.issue)
