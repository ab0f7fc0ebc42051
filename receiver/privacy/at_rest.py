"""Redaction and sealing of an event's body between verifying it and storing it, as the configuration asks."""

import json
from collections.abc import Mapping

from hookonce.receiver.encryption import Keyring, body_context
from hookonce.receiver.ledger.store import NewEvent
from hookonce.receiver.logs import limited
from hookonce.receiver.privacy.redaction import NOTHING, redacted
from hookonce.receiver.source import Source

log = limited(__name__)


def protected(event: NewEvent, source: Source, headers: Mapping[str, str], keyring: Keyring) -> NewEvent:
    """Redact an event's body as its source says, then seal it; `headers` are those it came with."""
    if source.redact:
        body = redacted(event.body, source.redact, {} if event.is_element else headers)
        if body is NOTHING:
            log.warning("a body that can't be read was redacted whole", extra={"source": source.name})
        event = event._replace(body=body)
    return sealed(event, keyring) if keyring.is_on else event


def sealed(event: NewEvent, keyring: Keyring) -> NewEvent:
    """Return an event with its body sealed, as whatever stores one without `protected` has to. Raises `KeyMissing`."""
    body, key = keyring.encrypt(event.body, body_context(event.source, event.event_id, event.fingerprint))
    return event._replace(body=body, key_id=key)


def imported(event: NewEvent, sources: Mapping[str, Source], keyring: Keyring) -> NewEvent:
    """Protect an event of another ledger as its source here says: what is never stored is not, however it comes."""
    source = sources.get(event.source)
    if source is None:
        return sealed(event, keyring)
    event = event._replace(keep_body=source.keep_body)
    return protected(event, source, json.loads(event.headers), keyring)
