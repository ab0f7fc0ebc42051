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
from typing import Any

import psycopg

from hookonce.providers.kit.http_file import Captured
from hookonce.receiver.encryption import KeyMissing, Keyring
from hookonce.receiver.ledger.queries import event_details, events, rejected
from hookonce.receiver.ledger.queries.event_filter import Filter

_BATCH = 100  # looked at in one go; more than a person waits for


class LedgerWatch:
    """The deliveries to a source from now on, stored or refused, with the `get` of a queue."""

    def __init__(self, connection: psycopg.Connection, source: str, keyring: Keyring) -> None:
        self._connection = connection
        self._keyring = keyring
        self._source = source
        self._waiting: deque[Captured] = deque()
        self._event = max((row.id for row in self._events()), default=0)
        self._refused = max((row["id"] for row in self._rejected()), default=0)

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
            detail = event_details.detail(self._connection, row.id, self._keyring)
            if detail and detail.body:
                kept = detail.body
                yield self._captured(kept.url, kept.headers, kept.body, row.received_at)
        for refused in [row for row in self._rejected() if row["id"] > self._refused]:
            self._refused = max(self._refused, refused["id"])
            if refused["unreadable"]:
                raise KeyMissing(refused["unreadable"])
            headers, body = refused["headers"], refused["body_prefix"]
            yield self._captured(f"/hooks/{self._source}", headers, body, refused["rejected_at"])

    def _captured(self, url: str, headers: Mapping[str, str], body: bytes, at: datetime) -> Captured:
        path = url[url.find("/hooks/") :] if "/hooks/" in url else url
        return Captured("POST", path, list(headers.items()), bytes(body), at)

    def _events(self) -> list[events.Event]:
        return list(events.events(self._connection, Filter(source=self._source), _BATCH))

    def _rejected(self) -> list[dict[str, Any]]:
        return list(
            rejected.rejected_deliveries(self._connection, self._keyring, source=self._source, limit=_BATCH)
        )


def _at(request: Captured) -> float:
    return request.at.timestamp() if request.at else 0
