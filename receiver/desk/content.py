"""Content is handed out here and nowhere else: what deliveries, errors and results say, and what handlers logged.

Rows of the ledger come without theirs (`receiver.ledger.withheld`). A caller gets it with the scope `bodies`, and that
is noted in the audit once an hour for each subject.
"""

import time
from datetime import timedelta
from math import inf
from typing import Final, TypeVar

from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.withheld import ContentRow

LOOK: Final = "look"
"""The action's name in the audit for content that was handed out."""
_NOTED_FOR: Final = timedelta(hours=1)
_MOST_NOTED: Final = 10_000
_noted: dict[tuple[str, ...], float] = {}
R = TypeVar("R", bound=ContentRow)


def handed_out(desk: Desk, subject: str, rows: list[R]) -> list[R]:
    """Return rows with their content where the caller may have it, and note that; else as they are."""
    whole = [each.with_content() for each in rows]
    if whole == rows or not desk.allows(Scope.BODIES):
        return rows
    if desk.token is not None:
        _note(desk, subject)
    return whole


def _note(desk: Desk, subject: str) -> None:
    key, now = (desk.settings.database_url, desk.who, subject), time.monotonic()
    if now - _noted.get(key, -inf) >= _NOTED_FOR.total_seconds():
        desk.note(LOOK, subject)
        _noted.pop(key, None)
        _noted[key] = now
        if len(_noted) > _MOST_NOTED:
            del _noted[next(iter(_noted))]
