"""Whether a limit that Redis calls used up can be: then the ledger holds about as many events.

A bucket in Redis holds no proof. A program that can write to it could have a source refused, or put off, for as long
as it goes on writing. So the ledger is asked once that has lasted: where it holds less than half of what the limit
allows, the process goes by its own share of the limit, as if Redis were away.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.stats.backlog import has_received
from hookonce.receiver.logs import limited
from hookonce.receiver.source import Source

log = limited(__name__)

PATIENCE = timedelta(seconds=10)
"""For how long Redis is believed at first: what it has counted may still be on its way into the ledger."""
QUIET = timedelta(minutes=1)
"""After so long without any, what comes over its limit does so for the first time."""
RECHECK_INTERVAL = timedelta(seconds=10)


@dataclass(slots=True)
class _Spell:
    """A time in which a source was over its limit, again and again."""

    since: float
    last: float
    checked_at: float = float("-inf")
    is_believed: bool = True


class LimitDoubts:
    """Asks the ledger at `url` whether sources can be over their limits; forgets nobody, for sources are few."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._spells: dict[str, _Spell] = {}

    def believes(self, source: Source, events: int) -> bool:
        """Return whether a delivery of so many events can be over the limit, as Redis says. Raises nothing."""
        now = self._clock()
        spell = self._spells.get(source.name)
        if spell is None or now - spell.last > QUIET.total_seconds():
            spell = self._spells[source.name] = _Spell(now, now)
        spell.last = now
        if now - spell.since < PATIENCE.total_seconds():
            return True
        if now - spell.checked_at > RECHECK_INTERVAL.total_seconds():
            spell.checked_at = now  # before others run while the ledger is asked
            spell.is_believed = self._can_be(source, events)
            if not spell.is_believed:
                log.warning(
                    "Redis says that a source is over its limit, and the ledger has not half as many events of it; "
                    "Redis is not believed",
                    extra={"source": source.name},
                )
        return spell.is_believed

    def _can_be(self, source: Source, events: int) -> bool:
        """Ask the ledger; where it does not answer in time, Redis may be right."""
        wanted = ((source.rate, 1), (source.quota, events))
        try:
            with connections.connect(self._url) as connection:
                return any(
                    has_received(connection, source.name, limit.period, max(1, (limit.count - many + 1) // 2))
                    for limit, many in wanted
                    if limit
                )
        except (psycopg.Error, LedgerUnavailable):
            return True
