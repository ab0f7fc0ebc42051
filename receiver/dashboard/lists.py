"""Pages that list one thing each, as the desk tells it: alerts, steps, commands, bulk replays, audit, limits."""

from typing import Any, TypeVar

from flask import Response, render_template, request

from hookonce.receiver.dashboard.alert_links import shown
from hookonce.receiver.dashboard.blueprint import admin, ask, context, to_page
from hookonce.receiver.desk.access.history import (
    AlertsQuery,
    AuditQuery,
    list_alerts,
    list_audit,
    send_test_alert,
)
from hookonce.receiver.desk.events import CommandsQuery, list_client_commands
from hookonce.receiver.desk.models import MAX_ID, PAGE_SIZE, Page, Paged, ResponseModel
from hookonce.receiver.desk.pauses import list_handlers
from hookonce.receiver.desk.registry import Action
from hookonce.receiver.desk.replays import list_bulk_replays
from hookonce.receiver.desk.steps import list_stopped_steps

_ROWS = 50
A = TypeVar("A", bound=ResponseModel)


@admin.get("/alerts")
def alerts() -> str:
    """Show what is wrong, then what was, and where alerts are sent."""
    opened = ask(list_alerts, asked=AlertsQuery(state="open", limit=PAGE_SIZE, cursor=None))
    return _page(
        list_alerts,
        AlertsQuery,
        "alerts",
        opened=[shown(each) for each in opened.data],
        are_sent=context().settings.alerts.are_sent,
        said=("good", "A worker sends a test alert.") if "said" in request.args else None,
    )


@admin.post("/alerts/test")
def test_alert() -> Response:
    """Have a worker send a test alert."""
    ask(send_test_alert)
    return to_page("alerts", said="sent")


@admin.get("/stopped-steps")
def stopped_steps() -> str:
    """Show the steps that wait for a person."""
    return _shown("stopped_steps", rows=ask(list_stopped_steps).data)


@admin.get("/commands")
def client_commands() -> str:
    """Show what clients asked for under a key, newest first."""
    configured = sorted(context().settings.commands)
    if not configured:  # of all events there are, none would be found
        return _shown("client_commands", rows=[], older=None, is_first=True, configured=configured)
    return _page(list_client_commands, CommandsQuery, "client_commands", configured=configured)


@admin.get("/bulk")
def bulks() -> str:
    """Show bulk replays, newest first."""
    return _page(list_bulk_replays, Paged, "bulks")


@admin.get("/audit")
def audit() -> str:
    """Show what people and programs did, newest first."""
    return _page(list_audit, AuditQuery, "audit")


@admin.get("/limits")
def limits() -> str:
    """Show what the runs of handlers are held to, how many wait for it, and the circuit breakers."""
    found = ask(list_handlers).data
    return _shown(
        "limits",
        limited=[
            (each, list(each.limits.words()))
            for each in found
            if each.limits and any((each.limits.rate, each.limits.concurrency))
        ],
        breakers=[each for each in found if each.breaker or (each.limits and each.limits.breaker)],
    )


def _page(action: Action[Page[A]], query: type[Paged], template: str, **page: Any) -> str:  # noqa: ANN401  a template's
    """Show a page of a listing; which one says the URL."""
    before = request.args.get("before", 0, int)
    asked = query(limit=_ROWS, cursor=before if 0 < before <= MAX_ID else None)
    found = ask(action, asked=asked)
    return _shown(template, rows=found.data, older=found.next, is_first=asked.cursor is None, **page)


def _shown(template: str, **page: Any) -> str:  # noqa: ANN401  the same
    return render_template(f"admin/{template}.html", **page)
