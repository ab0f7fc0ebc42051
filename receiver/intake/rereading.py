"""Reads unreadable deliveries anew, once the adapter of their source can read what their sender sends.

A delivery was verified when it came, so it is read and not verified again. Its events go the way of any delivery: the
sender's own retry is a duplicate, before or after.
"""

from collections.abc import Sequence

import psycopg

from hookonce.providers import Delivery, Rejected
from hookonce.receiver.config.settings import Settings, require_servers
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.replay import rereading
from hookonce.receiver.ledger.store import Key


class Rereader:
    """Reads unreadable deliveries; without `store` nothing is stored, and the answer is the same.

    It opens an `intake` of its own with the first delivery, unless it is given one.
    """

    def __init__(self, settings: Settings, intake: Intake | None = None, *, store: bool = True) -> None:
        self._settings = settings
        self._given = intake
        self._own: Intake | None = None
        self._store = store

    def __call__(self, connection: psycopg.Connection, event: int) -> Sequence[Key] | None:
        """Return the keys of the events that an unreadable one holds, all in the ledger; None where it stays.

        Raises: `LedgerUnavailable`.
        """
        found = rereading.find(connection, event, self._settings.keyring)
        source = found and self._settings.sources.get(found.source)
        if not found or not source:
            return None
        provider, body = source.provider, bytes(found.body.body)
        if found.body.is_element and provider.batch:
            body = provider.batch(body)
        delivery = Delivery(provider.methods[0], found.body.url, found.body.headers, body)
        try:
            events = self._intake().reread(source, delivery, found.received_at, store=self._store)
        except Rejected:
            return None
        return [(source.name, name) for name in events] or None

    def _intake(self) -> Intake:
        if self._given is not None:
            return self._given
        if self._own is None:
            require_servers(self._settings)
            self._own = Intake(self._settings)
        return self._own

    def close(self) -> None:
        """Close what was opened."""
        if self._own is not None:
            self._own.close()
