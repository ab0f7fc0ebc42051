"""Senders whose signature is in the body: their `sign` has nothing to say, and `deliver` makes the body."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack
from urllib.parse import urlencode

from providers import Delivery
from providers.kit.signing import FORM, Said

_TYPE = {"content-type": "application/json"}


def sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:  # noqa: ARG001
    """The content type only."""
    return dict(_TYPE)


def as_json(data: object, **said: Unpack[Said]) -> Delivery:
    """`data` posted as JSON, to the URL that was said."""
    return Delivery("POST", said.get("url", ""), _TYPE, json.dumps(data).encode())


def as_form(fields: Mapping[str, str], **said: Unpack[Said]) -> Delivery:
    """`fields` posted as an HTML form, to the URL that was said."""
    return Delivery("POST", said.get("url", ""), {"content-type": FORM}, urlencode(fields).encode())


def said_in(body: bytes) -> Any:  # noqa: ANN401  any JSON
    """What a body says, an empty object if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {}
