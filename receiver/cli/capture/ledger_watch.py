"""Deliveries as the receiver keeps them, for `hookonce capture` of a source that it serves already.

What is kept is not all that came: headers are in lower case, and
of a batch each event is by itself. Of a refused delivery the URL's query and all but the first bytes of the body
are gone. A redelivery is only counted.
"""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from queue import Empty

from hookonce.providers.kit.http_file import Captured
from hookonce.receiver.cli.desk import asking
from hookonce.receiver.desk.deliveries import as_it_came, rejected_as_they_came
from hookonce.receiver.desk.listed_events import EventsQuery, ListedEvent, list_events
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.rows import Rejection
from hookonce.receiver.encryption import KeyMissing

_BATCH = 100  # looked at in one go; more than a person waits for


class LedgerWatch:
    """The deliveries to a source from now on, stored or refused, with the `get` of a queue."""

    def __init__(self, here: Desk, source: str) -> None:
        self._here = here
        self._source = source
        self._waiting: deque[Captured] = deque()
        self._event = max((row.id for row in self._events()), default=0)
        self._refused = max((row.id for row in self._rejected()), default=0)

    def get(self, *, timeout: float) -> Captured:
        """Return the next delivery. Raises: Empty, when none has come after `timeout` seconds."""
        if not self._waiting:
            self._waiting.extend(sorted(self._new(), key=_at))
        if not self._waiting:
            time.sleep(timeout)
            raise Empty
        return self._waiting.popleft()

    def _new(self) -> Iterator[Captured]:
        for row in [row for row in self._events() if row.id > self._event]:
            self._event = max(self._event, row.id)
            if kept := as_it_came(self._here, row.id):
                yield self._captured(kept.url, kept.headers, kept.body, row.received_at)
        for refused in [row for row in self._rejected() if row.id > self._refused]:
            self._refused = max(self._refused, refused.id)
            if refused.unreadable:
                raise KeyMissing(refused.unreadable)
            url = f"/hooks/{self._source}"
            yield self._captured(url, refused.headers, refused.body_prefix, refused.rejected_at)

    def _captured(self, url: str, headers: Mapping[str, str], body: bytes, at: datetime) -> Captured:
        path = url[url.find("/hooks/") :] if "/hooks/" in url else url
        return Captured("POST", path, list(headers.items()), bytes(body), at)

    def _events(self) -> list[ListedEvent]:
        return self._here.ask(list_events, asked=asking(EventsQuery, source=self._source, limit=_BATCH)).data

    def _rejected(self) -> list[Rejection]:
        return rejected_as_they_came(self._here, self._source, _BATCH)


def _at(request: Captured) -> float:
    return request.at.timestamp() if request.at else 0
