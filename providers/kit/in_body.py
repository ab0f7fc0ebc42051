"""Senders whose signature is in the body: their `sign` has nothing to say, and `deliver` makes the body."""

import json
from datetime import datetime
from typing import Any, Unpack

from providers.kit.signing import Said


def sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:  # noqa: ARG001
    """The content type only."""
    return {"content-type": "application/json"}


def said_in(body: bytes) -> Any:  # noqa: ANN401  any JSON
    """What a body says, an empty object if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {}
