"""Senders whose signature is in the body: their `sign` has nothing to say, and `deliver` makes the body."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack
from urllib.parse import urlencode

from hookonce.providers import Delivery
from hookonce.providers.kit.signing.verdict import FORM, SignOptions

_TYPE = {"content-type": "application/json"}


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:  # noqa: ARG001
    """Return the content type only."""
    return dict(_TYPE)


def as_json(data: object, **options: Unpack[SignOptions]) -> Delivery:
    """`data` posted as JSON, to the URL that was said."""
    return Delivery("POST", options.get("url", ""), _TYPE, json.dumps(data).encode())


def as_form(fields: Mapping[str, str], **options: Unpack[SignOptions]) -> Delivery:
    """`fields` posted as an HTML form, to the URL that was said."""
    return Delivery("POST", options.get("url", ""), {"content-type": FORM}, urlencode(fields).encode())


def json_or_empty(body: bytes) -> Any:  # noqa: ANN401  any JSON
    """Return what a body says, an empty object if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {}
