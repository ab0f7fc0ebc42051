"""Whether content leaves, noted in the audit; and what is told of an error where it does not."""

import re
import time
from typing import Final

from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.stats import batch_figures

ACTION: Final = "look"
"""The action's name in the audit for content that was handed out."""
_NOTED_FOR: Final = 3600.0
_MOST_NOTED: Final = 10_000
_PLACE: Final = re.compile(r" \([^()\s]+\.pyx?:\d+\)\Z")
_noted: dict[tuple[str, ...], float] = {}


def is_handed_out(desk: Desk, subject: str) -> bool:
    """Return whether content of `subject` leaves, and note in the audit that it does."""
    if not desk.allows(Scope.BODIES):
        return False
    key, now = (desk.settings.database_url, desk.who, subject), time.monotonic()
    if desk.token is not None and now - _noted.get(key, -_NOTED_FOR) >= _NOTED_FOR:
        audit_log.note(desk.connection, desk.who, ACTION, subject)
        _noted.pop(key, None)
        _noted[key] = now
        if len(_noted) > _MOST_NOTED:
            del _noted[next(iter(_noted))]
    return True


def batches(desk: Desk) -> dict[str, batch_figures.BatchFigures]:
    """Return what became of the batches of handlers."""
    found = batch_figures.figures(desk.connection)
    if not any(each.error for each in found.values()) or is_handed_out(desk, "batches"):
        return found
    return {name: each._replace(error=each.error and brief(each.error)) for name, each in found.items()}


def brief(error: str) -> str:
    """Return the class of an error, and where it was raised, without what it says."""
    place = _PLACE.search(error)
    name = re.split(r":\s|\n", error, maxsplit=1)[0]
    return name if place is None or place[0] in name else name + place[0]
