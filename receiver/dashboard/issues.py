"""*What needs a person*: issues, a line for each handler and place, then other alerts; and an issue in full."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from flask import Response, abort, render_template, request

from hookonce.receiver.dashboard.alert_links import shown
from hookonce.receiver.dashboard.blueprint import admin, context, to_page
from hookonce.receiver.dashboard.charts import trends
from hookonce.receiver.dashboard.event_page.run_panels import Failure
from hookonce.receiver.desk.access.history import AlertsQuery, list_alerts
from hookonce.receiver.desk.issues import (
    IssueMark,
    IssuePath,
    IssuesQuery,
    affected_events,
    discard_dead_of,
    get_issue,
    list_issues,
    mark_issue,
    trends_of,
)
from hookonce.receiver.desk.models import PAGE_SIZE
from hookonce.receiver.desk.rows import MAX_COUNTED, IssueState

_NUMBER: Final = re.compile("[0-9a-f]{12}")
_STATES: Final = (*IssueState, "all")
_MAX_SHOWN: Final = 50
SPANS: Final = {"1d": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
"""For how long an issue may be ignored."""


@admin.get("/issues")
def issues() -> str:
    """List issues in a state, those that failed last first."""
    state = request.args.get("state", "open")
    if state not in _STATES:
        abort(400, f"No issue is {state!r}; there are {', '.join(_STATES)}.")
    with context().desk() as desk:
        found = list_issues(desk, asked=IssuesQuery.model_validate({"state": state, "limit": _MAX_SHOWN}))
        failed = trends_of(desk, [each.id for each in found.data])
        asked = AlertsQuery(state="open", without_issues=True, limit=PAGE_SIZE, cursor=None)
        others = list_alerts(desk, asked=asked).data
    return render_template(
        "admin/issues.html",
        issues=found.data,
        failed=failed,
        trends=trends,
        alerts=list(map(shown, others)),
        is_complete=found.is_complete,
        state=state,
        states=_STATES,
        most=MAX_COUNTED,
        spans=SPANS,
    )


@admin.get("/issues/<number>")
def issue(number: str) -> str:
    """Show an issue: its newest failure with the code, whose failures it has, and what can be done."""
    with context().desk() as desk:
        found = get_issue(desk, which=_named(number))
        failed = trends_of(desk, [number]).get(number)
        events = affected_events(desk, number)
    return render_template(
        "admin/issue.html",
        issue=found,
        failed=failed,
        trends=trends,
        events=events,
        latest=Failure(found.latest) if found.latest else None,
        most=MAX_COUNTED,
        spans=SPANS,
    )


@admin.post("/issues/<number>")
def mark(number: str) -> Response:
    """Update an issue's state, or discard its dead events."""
    which, form = _named(number), request.form
    with context().desk() as desk:
        if "discard" in form:
            discard_dead_of(desk, which)
        elif form.get("for") in SPANS:
            until = datetime.now(UTC) + SPANS[form["for"]]
            mark_issue(desk, which=which, asked=IssueMark(state=IssueState.IGNORED, until=until))
        elif form.get("state") in {IssueState.FIXED, IssueState.OPEN}:
            mark_issue(desk, which=which, asked=IssueMark(state=IssueState(form["state"]), until=None))
        else:
            abort(400, "Say what it is: fixed, open, or ignored for some days.")
    return to_page("issue", number=number)


def _named(number: str) -> IssuePath:
    if not _NUMBER.fullmatch(number):
        abort(404, "There is no such issue.")
    return IssuePath(issue=number)
