"""Confirmations: a plan, sealed. Nothing written into an event can be one, and only the plan that was shown is done.

A confirmation is good for a while and for one time, however often it is sent, and ends with its process.
"""

import base64
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from hookonce.receiver.desk.refusals import Conflict

LASTS: Final = timedelta(minutes=10)


class Confirmations:
    """Makes and opens the confirmations of one process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def sealed(self, plan: Mapping[str, Any]) -> str:
        """Return the confirmation of a plan."""
        until = int(time.time() + LASTS.total_seconds())
        text = json.dumps({**plan, "until": until, "nonce": secrets.token_hex(16)}).encode()
        return base64.urlsafe_b64encode(self._seal(text) + text).decode()

    def opened(self, confirmation: str) -> dict[str, Any]:
        """Return the plan of a confirmation. Raises: `Conflict` for what is none, or too old."""
        try:
            raw = base64.b64decode(confirmation.encode(), altchars=b"-_", validate=True)
        except (ValueError, UnicodeEncodeError):
            raw = b""
        seal, text = raw[:32], raw[32:]
        if not hmac.compare_digest(self._seal(text), seal):
            raise Conflict("this is no confirmation of a plan that was made here; make a plan first")
        plan: dict[str, Any] = json.loads(text)
        if plan["until"] < time.time():
            raise Conflict("this plan is too old; make it again")
        return plan

    def _seal(self, text: bytes) -> bytes:
        return hmac.digest(self._key, text, "sha256")
