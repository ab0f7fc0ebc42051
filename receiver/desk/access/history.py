"""The audit log, and alerts."""

from typing import Literal

from pydantic import Field

from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.models import Flag, Page, Paged, Text, Time
from hookonce.receiver.desk.refusals import NotConfigured, Unavailable
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.encryption import KeyMissing
from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.access.audit_log import Change
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.rows import Identifier, ResponseModel
from hookonce.receiver.monitoring.alert_events import send_test


class AuditQuery(Paged):
    """Which changes."""

    who: Text | None = Field(None, description="only of this person or token")
    action: Text | None = Field(None, description="only of this kind, as `replay` or `pause`")
    subject: Text | None = Field(None, description="only to this, as `event 12` or `source stripe`")
    since: Time | None = Field(None, description="only done then or later: 90s, 15m, 2h, 7d, a time")
    until: Time | None = Field(None, description="only done before that")


class AlertsQuery(Paged):
    """Which alerts."""

    state: Literal["open", "all"] = Field("all", description="`open`: what is wrong now")
    without_issues: Flag = Field(default=False, description="without those of issues, which `/issues` has")


class AlertSent(ResponseModel):
    """The event that a worker sends; `/events/{event}` says what came of it."""

    event: Identifier


@action(scope=Scope.READ)
def list_audit(desk: Desk, asked: AuditQuery) -> Page[Change]:
    """List what people and programs did, newest first."""
    wanted = asked.model_dump(exclude=set(Paged.model_fields))
    rows = audit_log.latest(desk.connection, asked.limit, asked.cursor, **wanted)
    return Page[Change].of(handed_out(desk, "audit", rows), asked)


@action(scope=Scope.READ)
def list_alerts(desk: Desk, asked: AlertsQuery) -> Page[Alert]:
    """List alerts, newest first."""
    rows = alerts.all_alerts(
        desk.connection,
        asked.limit,
        asked.cursor,
        only_open=asked.state == "open",
        left_out=alerts.OF_ISSUES if asked.without_issues else (),
    )
    return Page[Alert].of(rows, asked)


@action(scope=Scope.ADMIN)
def send_test_alert(desk: Desk) -> AlertSent:
    """Have a worker send a test alert to every target of `[alerts]`, as it would send a real one."""
    settings = desk.settings
    if not settings.alerts.are_sent:
        raise NotConfigured(
            "[alerts] has no target, so no alert is sent; add [alerts.slack], say", code="no_targets"
        )
    try:
        number = send_test(desk.connection, settings.keyring)
    except KeyMissing as error:
        raise Unavailable(str(error), code="key_missing") from None
    desk.notifies_workers = True
    return AlertSent(event=number)
