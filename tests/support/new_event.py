"""Small makers of the values that many tests need."""

import hashlib
from datetime import timedelta

from hookonce.receiver.ledger.store import NewEvent

WINDOW = timedelta(hours=1)


def new_event(event_id="evt_1", body=b"{}", source="stripe", **changes):
    fields = {
        "source": source,
        "provider": "stripe",
        "event_id": event_id,
        "type": "invoice.paid",
        "account": None,
        "fingerprint": hashlib.sha256(body).digest(),
        "id_is_signed": True,
        "occurred_at": None,
        "url": f"/hooks/{source}",
        "headers": "{}",
        "body": body,
    }
    return NewEvent(**(fields | changes))
