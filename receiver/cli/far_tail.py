"""`hookonce --at … tail`: the newest events of another inbox, asked for again and again."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from hookonce.receiver.cli.desk import asking
from hookonce.receiver.desk.listed_events import EventsQuery, list_events
from hookonce.receiver.desk.models import PAGE_SIZE
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.rows import Event

INTERVAL: Final = timedelta(seconds=2)
"""Between two looks: each is a request of the API, under a token's limit."""


class FarTail:
    """Gives what is new among the newest 200 events, and what has another status than before."""

    def __init__(self, here: Asks, wanted: dict[str, Any], last: int) -> None:
        self._here = here
        self._status = wanted.pop("status", None)
        self._asked = asking(EventsQuery, **wanted, limit=PAGE_SIZE)
        self._seen: dict[int, str] | None = None
        self._last = last

    def look(self) -> Iterator[Event]:
        """Yield it, the oldest first; at first the `last` events. Raises: `RemoteError`."""
        rows = self._here.ask(list_events, asked=self._asked).data
        before = self._seen
        self._seen = {row.id: row.status for row in rows}
        if before is None:
            new = [row for row in rows if self._status in {None, row.status}][: self._last]
        else:
            new = [
                row for row in rows if row.status != before.get(row.id) and self._status in {None, row.status}
            ]
        yield from reversed(new)
