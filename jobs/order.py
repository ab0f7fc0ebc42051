"""The newest wins: what a handler with `stale=` does with an event that is older than what it has done of the entity.

Senders deliver out of order, and retries and slots overtake. This stands around the call of a handler, inside its
transaction: the version is raised there, so that effects and version are committed together or not at all.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from psycopg.pq import TransactionStatus

from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.handlers import SKIP, Handler, RetryLater
from hookonce.receiver.ledger.entities import Busy, Entities, Version
from hookonce.receiver.ledger.results import SKIPPED

PATIENCE: Final = timedelta(seconds=1)
"""How long a run waits for another one of its entity before it is given back, uncharged."""
AT_ONCE: Final = 3
"""Runs of one entity that a process has at once: one goes on, the others wait; more are given back without waiting."""
PAUSE: Final = (0.5, 2.0)
"""Seconds: between these a run is due again that was given back."""
LONGEST_ACCOUNT: Final = 500
"""Characters of an account."""

Call = Callable[[Any, Any], object]
EntitiesOf = Callable[[Any], Entities]
"""Returns the entities as they are in the transaction that a handler is given."""

_under_way: Counter[Version] = Counter()
_lock = threading.Lock()


def guarded(call: Call, handler: Handler, entities_of: EntitiesOf) -> Call:
    """Return a call of a handler that skips or flags what is older than what it has done of the entity."""
    patience = max(1, min(PATIENCE, handler.timeout / 2) // timedelta(milliseconds=1))

    def call_newest(event: ReceivedEvent, given: Any) -> object:  # noqa: ANN401  what handlers are given
        entities, version = entities_of(given), _version_of(event, handler)
        try:
            if version is None:
                result = call(event, given)
                # At the end: others that count for this handler wait until the transaction has ended.
                if entities.cursor.connection.pgconn.transaction_status == TransactionStatus.INTRANS:
                    entities.count_unguarded(handler.name, event.id)
                return result
            with _turn(version):
                if (newest := entities.raise_to(version, patience)) != event.id:
                    if handler.stale == SKIP:
                        return {"skipped": SKIPPED, "newest": newest}
                    event.is_stale = True
                return call(event, given)
        except Busy:
            raise RetryLater(random.uniform(*PAUSE)) from None  # noqa: S311  spreads load, keeps no secret

    return call_newest


def _version_of(event: ReceivedEvent, handler: Handler) -> Version | None:
    account = event.account or ""
    if event.subject is None or len(account) > LONGEST_ACCOUNT:
        return None
    entity, version = event.subject
    return Version(handler.name, event.source, account, entity, version, event.id)


@contextmanager
def _turn(version: Version) -> Iterator[None]:
    """Take one of the entity's turns in this process. Raises `Busy` where there is none."""
    entity = version._replace(version=0, event=0)
    with _lock:
        if _under_way[entity] >= AT_ONCE:
            raise Busy
        _under_way[entity] += 1
    try:
        yield
    finally:
        with _lock:
            _under_way[entity] -= 1
            if not _under_way[entity]:
                del _under_way[entity]
