"""Alerts as events of our own: source `hookonce`, types `alert.raised`, `alert.resolved` and `alert.test`.

They go through the ledger like any other, so a handler delivers them, again and again if it must. Nobody can
send them: the source is not configured, so `/hooks/hookonce` is unknown. No body, secret or signature is in them.
"""

import hashlib
import json
from datetime import UTC, datetime
from uuid import uuid4

import psycopg

from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.store import NewEvent, store
from hookonce.receiver.privacy.at_rest import sealed


def alert_event(alert: Alert) -> NewEvent:
    """Return the event that reports an alert, raised or resolved."""
    what = "resolved" if alert.ended_at else "raised"
    return _event(
        f"alert_{alert.id}_{what}",
        f"alert.{what}",
        alert.ended_at or alert.since,
        {
            "id": alert.id,
            "kind": alert.kind,
            "subject": alert.subject,
            "detail": alert.detail,
            "since": alert.since.astimezone(UTC).isoformat(),
            "ended_at": alert.ended_at and alert.ended_at.astimezone(UTC).isoformat(),
        },
    )


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
