"""Deliveries of one sender, as its module signs them, and what comes of them."""

import json
from base64 import b64encode
from datetime import UTC, datetime

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIGNING = "whsec_" + b64encode(b"k" * 32).decode()
"""A secret that every sender takes whose secrets are any text, and every one whose secrets are `whsec_`."""


def sent(name, body, secret=SIGNING, now=NOW, options=None, **said):
    """A sender, and what it would send with `body` (JSON, unless it is bytes)."""
    provider = load(name, options=options)
    return provider, provider.delivery(_raw(body), secret, now, **said)


def reason_of(provider, delivery, *secrets, now=NOW):
    """Why a delivery is refused, None if it is accepted."""
    try:
        provider.verify(delivery, secrets or [SIGNING], now)
    except Rejected as error:
        return error.reason
    return None


def ids_of(name, body, **headers):
    """The ids of the events in a verified delivery."""
    return [event.id for event in load(name).events(Delivery("POST", "", headers, _raw(body)))]


def _raw(body):
    return body if isinstance(body, bytes) else json.dumps(body).encode()
