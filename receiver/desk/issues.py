"""Issues: dead and failing runs by handler and the place where they fail, and what a person has said of each."""

from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from hookonce.receiver.desk import content
from hookonce.receiver.desk.models import (
    Identifier,
    IssueId,
    Limit,
    Ours,
    RequestModel,
    ResponseModel,
    Text,
    Time,
    shown,
)
from hookonce.receiver.desk.refusals import Conflict, NotFound
from hookonce.receiver.desk.registry import Desk, action, looks_at
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.stats.backlog import MAX_COUNTED
from hookonce.receiver.ledger.stats.issues import MAX_LISTED, IssueState

_MAX_OCCURRENCES = 20
State = Literal[IssueState.OPEN, IssueState.FIXED, IssueState.IGNORED]


class IssuesQuery(RequestModel):
    """Which issues."""

    state: Literal["open", "fixed", "ignored", "all"] = Field("open", description="only in this state")
    handler: Text | None = Field(None, description="only of this handler")
    limit: Limit = Field(50, description="how many rows at most")


class IssuePath(RequestModel):
    """An issue."""

    issue: IssueId


class IssueMark(RequestModel):
    """What is said of an issue: `ignored` needs until when."""

    state: State
    until: Time | None = Field(None, description="with `ignored`: the end of it, in the future")


class Issue(ResponseModel):
    """Failures of one handler at one place; its dead runs are found and replayed by `issue` of a filter."""

    id: IssueId
    handler: Ours
    title: str = Field(description="the error's class, and the place in your code")
    state: State = Field(
        description="`fixed` opens itself when a newer release fails so again, `ignored` at `ignored_until`"
    )
    ignored_until: datetime | None
    reopened_at: datetime | None = Field(description="when it opened itself after it was fixed")
    first_seen: datetime
    first_release: Ours
    last_seen: datetime | None
    last_release: Ours | None
    error: str | None = Field(description="what the newest failure says")
    event: Identifier | None = Field(description="whose failure that is")
    failures: int = Field(description=f"failed attempts that are kept; {MAX_COUNTED + 1} means more")
    dead: int = Field(description="runs that are dead of it now; the same")


class Issues(ResponseModel):
    """Issues, those that failed last first."""

    data: list[Issue]
    is_complete: bool = Field(description="false where there are more than were asked for")


class Occurrence(ResponseModel):
    """A failed attempt."""

    event: Identifier
    attempt: int
    failed_at: datetime
    release: Ours | None


class FullIssue(Issue):
    """An issue with its newest failures."""

    occurrences: list[Occurrence]


@action(scope=Scope.READ)
def list_issues(desk: Desk, asked: IssuesQuery) -> Issues:
    """List what fails: one issue for each handler and place, with first and last seen, how often, and how many died."""
    state = None if asked.state == "all" else IssueState(asked.state)
    found = content.issue_rows(desk, state, asked.handler, min(asked.limit, MAX_LISTED) + 1)
    return Issues(
        data=shown(Issue, found[: asked.limit]),
        is_complete=len(found) <= asked.limit,
    )


@action(scope=Scope.READ)
def get_issue(desk: Desk, which: IssuePath) -> FullIssue:
    """Show an issue, and its newest failures."""
    found = content.issue(desk, which.issue)
    if found is None:
        raise NotFound(f"no issue has the id {which.issue}; `hookonce issues list --state all` shows all")
    newest = issues.occurrences(desk.connection, which.issue, _MAX_OCCURRENCES)
    return FullIssue(
        **Issue.model_validate(found, from_attributes=True).model_dump(),
        occurrences=shown(Occurrence, newest),
    )


@action(scope=Scope.REPLAY, asks="what the issue is", looks=looks_at(get_issue), audits="issue")
def mark_issue(desk: Desk, which: IssuePath, asked: IssueMark) -> FullIssue:
    """Say what has become of an issue: it is fixed, ignored until a time, or open after all."""
    is_ignored = asked.state == IssueState.IGNORED
    if is_ignored and (asked.until is None or asked.until <= datetime.now(UTC)):
        raise Conflict("`ignored` needs `until`, a time in the future")
    if not is_ignored and asked.until is not None:
        raise Conflict("`until` is for `ignored`")
    issues.mark(desk.connection, which.issue, IssueState(asked.state), desk.who, asked.until)
    return get_issue.function(desk, which)
