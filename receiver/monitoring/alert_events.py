"""Alerts as events of our own: source `hookonce`, types `alert.raised`, `.resolved`, `.rest` and `.test`.

They go through the ledger like any other, so a handler delivers them, again and again if it must. Nobody can
send them: the source is not configured, so `/hooks/hookonce` is unknown. No body, secret or signature is in them.
"""

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

import psycopg

from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.stats.backlog import MAX_COUNTED
from hookonce.receiver.ledger.stats.issues import IssueRow
from hookonce.receiver.ledger.store import NewEvent, store
from hookonce.receiver.privacy.at_rest import sealed

ISSUES: Final = ("new_issue", "reopened_issue")
"""Kinds of alerts whose subject is an issue."""
_TITLE = re.compile(r"(?P<error>.+) \((?P<place>.+)\)")


def alert_event(
    alert: Alert, console: str = "", issue: IssueRow | None = None, text: str | None = None
) -> NewEvent:
    """Return the event that reports an alert, raised or resolved.

    `console` is the console's address, '' if it is not known; `issue` the one the alert is about, `text` its error's.
    """
    what = "resolved" if alert.ended_at else "raised"
    page = f"issues/{alert.subject}" if alert.kind in ISSUES else "alerts"
    data: dict[str, object] = {
        "id": alert.id,
        "kind": alert.kind,
        "subject": alert.subject,
        "detail": alert.detail,
        "since": alert.since.astimezone(UTC).isoformat(),
        "ended_at": alert.ended_at and alert.ended_at.astimezone(UTC).isoformat(),
        "link": f"{console}/admin/{page}" if console else None,
    }
    if issue is not None:
        data["issue"] = _about(issue, text)
    return _event(f"alert_{alert.id}_{what}", f"alert.{what}", alert.ended_at or alert.since, data)


def _about(issue: IssueRow, text: str | None) -> dict[str, object]:
    found = _TITLE.fullmatch(issue.title)
    about: dict[str, object] = {
        "handler": issue.handler,
        "error": found["error"] if found else issue.title,
        "place": found["place"] if found else None,
        "failures": _counted(issue.failures),
        "dead": _counted(issue.dead),
        "release": issue.last_release,
    }
    return about if text is None else about | {"text": text}


def _counted(number: int) -> str:
    return f"more than {MAX_COUNTED}" if number > MAX_COUNTED else str(number)


def rest_event(now: datetime, number: int, console: str) -> NewEvent:
    """Return the event that counts alerts of which there are no messages, since there were too many."""
    are = "1 more alert was" if number == 1 else f"{number} more alerts were"
    detail = f"{are} raised or resolved within the hour; see `hookonce alerts list --all`"
    link = f"{console}/admin/alerts" if console else None
    return _event(alerts.rest_id(now), "alert.rest", now, {"detail": detail, "number": number, "link": link})


def send_test(connection: psycopg.Connection, keyring: Keyring) -> int:
    """Store a test event for a worker to send, due now; give its ledger id. Raises `KeyMissing`."""
    event = sealed(test_event(datetime.now(UTC)), keyring)
    return store(connection, [event])[event.key].id


def test_event(now: datetime) -> NewEvent:
    """Return an event that only shows whether alerts arrive."""
    return _event(
        f"alert_test_{uuid4().hex}", "alert.test", now, {"detail": "a test: alerts of hookonce arrive here"}
    )


def _event(event_id: str, kind: str, at: datetime, data: dict[str, object]) -> NewEvent:
    document = {"type": kind, "timestamp": at.astimezone(UTC).isoformat(), "data": data}
    body = json.dumps(document).encode()
    return NewEvent(
        source=ALERTS_SOURCE,
        provider=ALERTS_SOURCE,
        event_id=event_id,
        type=kind,
        account=None,
        fingerprint=hashlib.sha256(body).digest(),
        id_is_signed=True,
        occurred_at=at,
        url=f"/hooks/{ALERTS_SOURCE}",
        headers='{"content-type": "application/json"}',
        body=body,
    )
