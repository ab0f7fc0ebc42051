"""The keys that handlers give to others with their effects: made of names that never change, so never stored."""

import hashlib


def idempotency_key(source: str, event_id: str, handler: str) -> str:
    """Derive the key that every attempt, replay and worker gives to the same work (64 hex digits)."""
    return hashlib.sha256(f"{source}\n{event_id}\n{handler}".encode()).hexdigest()


def step_key(idempotency_key: str, name: str) -> str:
    """Derive the key of a step from that of its handler on its event (64 hex digits)."""
    return hashlib.sha256(f"{idempotency_key}\n{name}".encode()).hexdigest()
