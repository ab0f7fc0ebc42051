"""*Issues*: what fails, a line for each handler and place; an issue in full, and what a person says of it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from flask import Response, abort, make_response, redirect, render_template, request, url_for

from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.dashboard.event_page.run_panels import Failure
from hookonce.receiver.desk.issues import (
    IssueMark,
    IssuePath,
    IssuesQuery,
    get_issue,
    list_issues,
    mark_issue,
)
from hookonce.receiver.desk.rows import MAX_COUNTED, MAX_LISTED, IssueState

_NUMBER: Final = re.compile("[0-9a-f]{12}")
_STATES: Final = (*IssueState, "all")
SPANS: Final = {"1d": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
"""For how long an issue may be ignored."""


@admin.get("/issues")
def issues() -> str:
    """List issues in a state, those that failed last first."""
    state = request.args.get("state", "open")
    if state not in _STATES:
        abort(400, f"No issue is {state!r}; there are {', '.join(_STATES)}.")
    with context().desk() as desk:
        found = list_issues(desk, asked=IssuesQuery.model_validate({"state": state, "limit": MAX_LISTED}))
    return render_template(
        "admin/issues.html",
        issues=found.data,
        is_complete=found.is_complete,
        state=state,
        states=_STATES,
        most=MAX_COUNTED,
        now=datetime.now(UTC),
    )


@admin.get("/issues/<number>")
def issue(number: str) -> str:
    """Show an issue: its newest failure with the code, whose failures it has, and what can be done."""
    with context().desk() as desk:
        found = get_issue(desk, which=_named(number))
    return render_template(
        "admin/issue.html",
        issue=found,
        latest=Failure.of(dict(found.latest)) if found.latest else None,
        most=MAX_COUNTED,
        spans=SPANS,
        now=datetime.now(UTC),
    )


@admin.post("/issues/<number>")
def mark(number: str) -> Response:
    """Update an issue's state."""
    state, span = request.form.get("state", ""), SPANS.get(request.form.get("for", ""))
    if state not in list(IssueState) or (state == IssueState.IGNORED) is (span is None):
        abort(400, "Say what it is: fixed, open, or ignored for some days.")
    until = datetime.now(UTC) + span if span else None
    asked = IssueMark(state=IssueState(state), until=until, discard="discard" in request.form)
    with context().desk() as desk:
        mark_issue(desk, which=_named(number), asked=asked)
    return make_response(redirect(url_for("admin.issue", number=number), 303))


def _named(number: str) -> IssuePath:
    if not _NUMBER.fullmatch(number):
        abort(404, "There is no such issue.")
    return IssuePath(issue=number)
