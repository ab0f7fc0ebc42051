"""What people did, and what was wrong."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from receiver.api.fields import Identifier, Page, Paged, Shown
from receiver.api.operations import Call, operation
from receiver.ledger import alerts, audit
from receiver.ledger.tokens import Scope


class Change(Shown):
    """One thing somebody did, and to what."""

    id: Identifier
    at: datetime
    who: str
    action: str
    subject: str
    detail: Any


class ChangePage(Page[Change]):
    """Changes, newest first."""


class AlertsQuery(Paged):
    """Which alerts."""

    state: Literal["open", "all"] = Field("all", description="`open`: what is wrong now")


class Alert(Shown):
    """One trouble; `subject` is a source or a server, empty for the inbox as a whole."""

    id: Identifier
    kind: str
    subject: str
    detail: str
    since: datetime
    ended_at: datetime | None


class AlertPage(Page[Alert]):
    """Alerts, newest first."""


@operation("GET", "/audit", scope=Scope.READ)
def list_audit(call: Call, query: Paged) -> ChangePage:
    """List what people and programs did, newest first."""
    rows = audit.latest(call.connection, query.limit, query.cursor)
    return ChangePage(
        data=[Change.model_validate(asdict(row)) for row in rows],
        next=rows[-1].id if len(rows) == query.limit else None,
    )


@operation("GET", "/alerts", scope=Scope.READ)
def list_alerts(call: Call, query: AlertsQuery) -> AlertPage:
    """List alerts, newest first."""
    rows = alerts.all_alerts(call.connection, query.limit, query.cursor, only_open=query.state == "open")
    return AlertPage(
        data=[Alert.model_validate(row._asdict()) for row in rows],
        next=rows[-1].id if len(rows) == query.limit else None,
    )


OPERATIONS = (list_audit, list_alerts)
