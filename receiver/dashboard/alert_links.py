"""Links of alerts: the page on which something can be done about each, and what to do there."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import urlencode

from flask import url_for

from hookonce.receiver.desk.rows import Alert
from hookonce.receiver.ledger.states import EventStatus


class _Way(NamedTuple):
    """A page, what it shows besides the alert's source, and what to do there."""

    endpoint: str
    to_do: str
    fields: Mapping[str, str] = {}


_WAYS: Final[Mapping[str, _Way]] = {
    "dead_runs": _Way(
        "admin.events", "See the dead events, fix the cause, replay", {"status": EventStatus.DEAD}
    ),
    "retried_for": _Way(
        "admin.events",
        "See the events being retried and their errors",
        {"status": EventStatus.WAITING},
    ),
    "signature_failures": _Way("admin.rejected", "See the rejected deliveries, compare the secret"),
    "conflicts": _Way("admin.events", "See the events, ask the sender why", {"since": "24h"}),
    "duplicates": _Way("admin.events", "See the events, ask the sender why", {"since": "24h"}),
    "oldest_due": _Way("admin.handlers", "See what handlers wait for, start more workers"),
    "breaker_open": _Way("admin.limits", "See its error, fix the cause, resume it"),
    "clock": _Way("admin.overview", "Compare the clocks of the database and of its host with a time server"),
    "unreadable": _Way(
        "admin.events", "See why, correct the provider module, then replay them", {"type": "unreadable"}
    ),
    "lost_leases": _Way("admin.handlers", "See which handlers are slow, give workers time to finish"),
}
_OF_SOURCES: Final = {
    "source_silent": "See the source, check the URL at its sender",
    "missing_events": "See what never came and why, then reconcile",
    "sender_not_asked": "See what its sender answers, check api_key",
    "subscription": "See until when it lasts, check api_key",
}
_ELSEWHERE: Final = _Way("admin.overview", "See the state of the servers on the overview")


class ShownAlert(NamedTuple):
    """An alert as pages show it: no ids of issues, no commands, and a link to where something can be done about it."""

    title: str
    detail: str
    since: datetime
    where: str
    to_do: str


def shown(alert: Alert) -> ShownAlert:
    """Return an alert as pages show it."""
    kind = alert.kind.replace("_", " ")
    subject = "" if is_of_issue(alert) else alert.subject
    detail = "; ".join(part for part in alert.detail.split("; ") if "`hookonce " not in part)
    return ShownAlert(f"{kind}: {subject}" if subject else kind, detail, alert.since, *alert_link(alert))


def is_of_issue(alert: Alert) -> bool:
    """Whether an alert is of an issue, which has a page of its own."""
    return alert.kind in {"new_issue", "reopened_issue"}


def alert_link(alert: Alert) -> tuple[str, str]:
    """Return an address and what to do there."""
    if is_of_issue(alert):
        return url_for("admin.issue", number=alert.subject), "See its error and code, fix it or ignore it"
    if alert.kind in _OF_SOURCES:
        source = alert.subject.partition(" ")[0]
        return url_for("admin.source", name=source), _OF_SOURCES[alert.kind]
    way = _WAYS.get(alert.kind, _ELSEWHERE)
    fields = dict(way.fields)
    if alert.subject and way.endpoint in {"admin.events", "admin.rejected"}:
        fields["source"] = alert.subject
    return url_for(way.endpoint) + (f"?{urlencode(fields)}" if fields else ""), way.to_do
