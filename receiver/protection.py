"""What happens to an event's body between verifying it and storing it, where the configuration asks for it."""

from dataclasses import replace

from receiver.ledger.store import NewEvent
from receiver.sealing import Keyring, of_body


def sealed(event: NewEvent, keyring: Keyring) -> NewEvent:
    """Give an event with its body sealed; whatever stores events goes through here. Raises `KeyMissing`."""
    body, key = keyring.seal(event.body, of_body(event.source, event.event_id, event.fingerprint))
    return replace(event, body=body, key_id=key)
