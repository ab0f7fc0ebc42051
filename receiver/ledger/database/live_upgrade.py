"""Upgrades a ledger that receivers and workers of the version before are using (`former_tables` has the steps).

A delivery waits for a lock no longer than one try does (`Patience.lock`), and at the swap for the few milliseconds that
it takes besides. Workers of before have nothing to claim while the runs under way are waited for, `Patience.leases` at
most: a lock on `pauses`, which every claim reads first, is gone with this process, whatever ends it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from hookonce.receiver.ledger.database import engines, former_tables

T = TypeVar("T")
Swap = Callable[[Any], None]
TAKE_TIME = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
_LOOK_AGAIN = 0.1
_FEW = 200
"""Notes that are left to the swap."""
_STOP_CLAIMS = "LOCK TABLE hookonce.pauses IN ACCESS EXCLUSIVE MODE"
_ANALYZE = "ANALYZE hookonce.queue, hookonce.next_runs"
_VALIDATE = "ALTER TABLE hookonce.steps VALIDATE CONSTRAINT steps_event_fkey"


@dataclass(frozen=True)
class Patience:
    """How an upgrade waits for locks, and for runs that workers of before have under way.

    Deliveries wait as long as one try does, so `lock` is well below `connections.LOCK_TIMEOUT`. An autovacuum gives up
    for others only when they have waited for deadlock_timeout (1 s), so that where one is in the way, and nowhere else,
    the last try waits for `vacuum_lock`. What is still under way after `leases` runs anew when its lease is over.
    """

    lock: timedelta = timedelta(milliseconds=300)
    vacuum_lock: timedelta = timedelta(seconds=1.2)
    pause: timedelta = timedelta(seconds=1)
    tries: int = 30
    leases: timedelta = timedelta(seconds=15)


class Progress(NamedTuple):
    """Which step is under way, how far a copy has come (up to which event, of how many), why one is postponed."""

    step: str
    copied: int = 0
    of: int = 0
    why: str = ""


Say = Callable[[Progress], None]


@dataclass(frozen=True)
class Steps:
    """The steps of one upgrade; each may fail for want of a lock, and is begun anew by `tried`.

    `swap` is given the connection whose transaction it is to be done in.
    """

    engine: Engine
    patience: Patience
    tried: Callable[[Callable[[timedelta], Any]], Any]
    say: Say

    def take_over(self, swap: Swap, *, waits_for_runs: bool) -> None:
        """Do all of them but the last; those that an upgrade before has done are passed over."""
        self.say(Progress("expand"))
        self.tried(lambda wait: self._in_transaction(former_tables.expand, wait))
        self._copy()
        while self._catch_up() > _FEW:
            pass
        self.look(lambda driver: driver.execute(_ANALYZE))
        self.say(Progress("swap"))
        until = time.monotonic() + (self.patience.leases.total_seconds() if waits_for_runs else 0)
        self.tried(lambda wait: self._swap(swap, wait, until))

    def look(self, question: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Return what is asked of the database, in a transaction of its own, which keeps no lock."""
        with self.engine.connect() as connection, connection.begin():
            driver = engines.raw(connection)
            driver.execute(TAKE_TIME)
            return question(driver)

    def contract(self) -> None:
        """Drop what was kept for processes of before."""
        self.say(Progress("contract"))
        self.tried(lambda wait: self._in_transaction(former_tables.contract, wait))

    def validate(self) -> None:
        """Have PostgreSQL look through what the swap has only declared; nobody waits for it."""
        self.tried(lambda wait: self._in_transaction(lambda driver: driver.execute(_VALIDATE), wait))

    def recount(self, recount: Callable[[psycopg.Connection[Any]], None]) -> None:
        """Have the events counted afresh: the sums of before may be wrong, and none are kept of slices yet."""
        self.tried(lambda wait: self._in_transaction(recount, wait))

    def _copy(self) -> None:
        def step(driver: psycopg.Connection[Any]) -> bool:
            last = former_tables.copy_range(driver)
            found = former_tables.progress(driver)
            if found is not None:
                self.say(Progress("copy", found[0], found[1]))
            return last is not None

        while self.tried(lambda wait: self._in_transaction(step, wait)):
            pass

    def _catch_up(self) -> int:
        count, _ = self.tried(lambda wait: self._in_transaction(former_tables.catch_up, wait))
        return int(count)

    def _swap(self, swap: Swap, wait: timedelta, until: float) -> None:
        with self.engine.connect() as connection, connection.begin():
            driver = engines.raw(connection)
            _wait_at_most(driver, wait)
            driver.execute(_STOP_CLAIMS)
            self._wait_for_leases(wait, until)
            swap(connection)

    def _wait_for_leases(self, wait: timedelta, until: float) -> None:
        """Wait until no worker of before has anything under way, as long as there is time; copy what they end."""
        with self.engine.connect() as connection:
            driver = engines.raw(connection)

            def step() -> tuple[int, set[int]]:
                with connection.begin():
                    _wait_at_most(driver, wait)  # of who waits for us: no deadlock that PostgreSQL could see
                    count, events = former_tables.catch_up(driver)
                    return count, former_tables.leased(driver, sorted(left | set(events)))

            with connection.begin():
                driver.execute(TAKE_TIME)
                left = former_tables.leased(driver)
            while True:
                count, left = step()
                if time.monotonic() > until or (count <= _FEW and not left):
                    return
                if count <= _FEW:
                    time.sleep(_LOOK_AGAIN)

    def _in_transaction(self, step: Callable[[psycopg.Connection[Any]], T], wait: timedelta) -> T:
        with self.engine.connect() as connection, connection.begin():
            driver = engines.raw(connection)
            _wait_at_most(driver, wait)
            return step(driver)


def is_locked_out(error: Exception) -> bool:
    """Return whether an error says that a lock was not to be had in time."""
    cause = error.orig if isinstance(error, OperationalError) else error
    return isinstance(cause, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected)


def _wait_at_most(driver: psycopg.Connection[Any], wait: timedelta) -> None:
    """Bound the transaction's waits for locks, and nothing else, whatever a role or a pooler sets."""
    driver.execute(f"SET LOCAL lock_timeout = {wait // timedelta(milliseconds=1)}".encode())
    driver.execute(TAKE_TIME)
