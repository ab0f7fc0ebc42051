"""Outcomes of commands: one look for all who wait in a process, on one connection.

A request that waits is an entry in a table and holds nothing else. As long as anybody waits, one thread looks, and soon
again: every millisecond or two for who has just come, less often for who has waited long.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg

from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.ledger import commands
from hookonce.receiver.ledger.commands import Name, Outcome
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.processes.waits import IN_THREAD, Waits, run

log = logging.getLogger(__name__)

SOON = timedelta(milliseconds=1.5)
SELDOM = timedelta(milliseconds=50)
_AGE_SHARE = 0.05
"""Of how long the youngest has waited: the pause to the next look."""
PATIENCE = timedelta(seconds=6)
"""For one look; it has timeouts of its own."""
IDLE = timedelta(seconds=30)
"""After which the connection is closed."""


@dataclass(eq=False, slots=True)
class _Waiting:
    name: Name
    since: float
    until: float
    waits: Waits
    bell: Any = field(init=False)
    outcome: Outcome | None = None
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.bell = self.waits.bell()


class Outcomes:
    """Tells what became of commands; its thread lives while somebody asks."""

    def __init__(self, url: str, keyring: Keyring = OFF) -> None:
        self.idle = IDLE
        self._url = url
        self._keyring = keyring
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._waiting: list[_Waiting] = []
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection | None = None
        self._is_closed = False

    def of(self, name: Name, wait: timedelta = timedelta(0)) -> Outcome | None:
        """Return what became of a command, the calling thread waiting for it; as `became`."""
        return run(self.became(name, wait, IN_THREAD))

    async def became(self, name: Name, wait: timedelta, waits: Waits) -> Outcome | None:
        """Return what became of a command: when it has ended, or after `wait`. None for one that is not known.

        Raises `LedgerUnavailable`.
        """
        now = time.monotonic()
        waiting = _Waiting(name, now, now + wait.total_seconds(), waits)
        with self._lock:
            self._waiting.append(waiting)
            if (self._thread is None or not self._thread.is_alive()) and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="outcomes", daemon=True)
                self._thread.start()
        self._asked.set()
        if not await waits.rung(waiting.bell, wait + PATIENCE):
            with self._lock:
                self._waiting = [each for each in self._waiting if each is not waiting]
            raise LedgerUnavailable("the ledger did not answer in time")
        if waiting.error is not None:
            raise LedgerUnavailable(str(waiting.error)) from waiting.error
        if waiting.outcome is not None and waiting.outcome.unreadable:
            raise LedgerUnavailable(f"a command's result can't be opened: {waiting.outcome.unreadable}")
        return waiting.outcome

    def close(self) -> None:
        """End the thread; for tests, a server's process keeps it."""
        self._is_closed = True
        self._asked.set()
        if self._thread is not None:
            self._thread.join(PATIENCE.total_seconds())

    def _run(self) -> None:
        try:
            while not self._is_closed:
                with self._lock:
                    waiting = list(self._waiting)
                    self._asked.clear()
                if waiting:
                    self._look(waiting)
                    self._pause()
                elif not self._asked.wait(self.idle.total_seconds()):
                    self._disconnect()
        finally:
            self._disconnect()

    def _pause(self) -> None:
        """Sleep until the next look, unless nobody waits any more."""
        with self._lock:
            youngest = max((each.since for each in self._waiting), default=None)
        if youngest is not None:
            share = (time.monotonic() - youngest) * _AGE_SHARE
            time.sleep(min(max(share, SOON.total_seconds()), SELDOM.total_seconds()))

    def _look(self, waiting: Sequence[_Waiting]) -> None:
        found: dict[Name, Outcome] = {}
        failure: Exception | None = None
        try:
            found = self._find({each.name for each in waiting})
        except (psycopg.Error, LedgerUnavailable) as error:
            self._disconnect()
            log.info("commands can't be looked up: %s", type(error).__name__)
            failure = LedgerUnavailable(f"commands can't be looked up: {type(error).__name__}")
        except Exception as error:  # or who waits would wait for a thread that has ended
            self._disconnect()
            log.exception("commands can't be looked up: %s", type(error).__name__)
            failure = LedgerUnavailable(f"commands can't be looked up: {type(error).__name__}")
        now = time.monotonic()
        ended = []
        for each in waiting:
            outcome = found.get(each.name)
            if failure or outcome is None or outcome.is_final or now >= each.until:
                each.outcome, each.error = outcome, failure
                ended.append(each)
        with self._lock:
            gone = set(map(id, ended))
            self._waiting = [each for each in self._waiting if id(each) not in gone]
        for each in ended:
            each.waits.ring([each.bell])

    def _find(self, names: set[Name]) -> dict[Name, Outcome]:
        if self._connection is None:
            self._connection = connections.connect(self._url)
        try:
            return commands.find(self._connection, names, self._keyring)
        except psycopg.OperationalError:  # it may have been cut while it was idle: once more
            self._disconnect()
            self._connection = connections.connect(self._url)
            return commands.find(self._connection, names, self._keyring)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
