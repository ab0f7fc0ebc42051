"""Does what is due of all sources: compares lists, has missing events come, and renews. Safe in many processes."""

import logging
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import psycopg

from hookonce.providers.kit.calls import CallFailed
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.intake.sender_api.client import Client, Means, account_of
from hookonce.receiver.intake.sender_api.reconciling import LEASE, Reconciler
from hookonce.receiver.intake.sender_api.renewing import renew
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.maintenance import sender_api as ledger
from hookonce.receiver.ledger.maintenance.sender_api import LeaseLost, ListingState
from hookonce.receiver.source import Source

log = logging.getLogger(__name__)

TURN: Final = timedelta(seconds=30)
RETRY: Final = timedelta(minutes=5)


class Rounds:
    """The senders of one inbox; everything it opens, it opens with the first turn."""

    def __init__(self, settings: Settings, means: Means | None = None, lease: timedelta = LEASE) -> None:
        self._settings = settings
        self._means = means or Means()
        self._lease = lease
        self._intake: Intake | None = None
        asking = [each for each in settings.sources.values() if each.asks]
        self._clients = {each.name: Client(each, self._means) for each in asking}

    def forever(self, stopping: threading.Event) -> None:
        """Take turns until stopped, beside a sweep: in a thread of its own, since senders may be slow."""
        while self._clients and not stopping.is_set():
            try:
                with connections.connect(self._settings.database_url) as connection:
                    while not stopping.is_set():
                        self.turn(connection)
                        stopping.wait(TURN.total_seconds())
            except (psycopg.Error, LedgerUnavailable) as error:
                log.warning("senders are not asked: the ledger is away: %s", type(error).__name__)
            except Exception:  # the thread would end, and with it every renewal
                log.exception("senders are not asked")
            stopping.wait(TURN.total_seconds())

    def turn(self, connection: psycopg.Connection) -> None:
        """Do what is due. Raises: psycopg.Error, LedgerUnavailable."""
        open_ = ledger.missing_counts(connection)
        for name, client in self._clients.items():
            state = ledger.listings(connection).get(name)
            is_due = state is None or state.due_at <= self._means.now()
            is_failing = state is not None and state.failed_since is not None
            if client.source.reconcile and (is_due or (name in open_ and not is_failing)):
                self.reconcile(connection, name)
            if renewal := client.source.provider.renewal:
                for each in client.source.renew:
                    if told := renew(connection, client, renewal, each):
                        log.warning("source '%s': %s", name, told)

    def reconciler(self, source: Source) -> Reconciler:
        """Return what compares the list of a source's sender. Raises `CallFailed` where there is none."""
        client, listing = self._clients.get(source.name), source.provider.listing
        if client is None or listing is None:
            raise CallFailed(
                f"{source.provider.name} is not asked what it sent; it needs api_key and reconcile"
            )
        self._intake = self._intake or Intake(self._settings, self._means.now)
        return Reconciler(self._settings, client, listing, self._intake, self._lease)

    def reconcile(
        self, connection: psycopg.Connection, name: str, since: datetime | None = None, *, eager: bool = False
    ) -> str | None:
        """Compare a source's list if that is due, or wanted now (`eager`), and have what is missing come.

        Return what failed, in one line, or None.
        """
        client = self._clients[name]
        state = ledger.lease_listing(connection, name, client.now, self._lease)
        if state is None:
            return "another process is at it" if eager else None
        with suppress(LeaseLost):
            try:
                self._expect_one_source(client)
                reconciler = self.reconciler(client.source)
                if eager or state.due_at <= client.now:
                    reconciler.run(connection, state, since)
                    state = ledger.listings(connection)[name]._replace(token=state.token)
                    due_at = client.now + (client.source.reconcile or timedelta(hours=1))
                    ledger.update_listing(connection, state, due_at=due_at)
                    if state.problem:
                        log.warning("source '%s': %s", name, state.problem)
                reconciler.settle(connection, state, eager=eager)
            except CallFailed as error:
                return self._failed(connection, state, client, error)
            else:
                return None
            finally:
                with suppress(psycopg.Error):  # of a connection that is broken; the lease ends by itself
                    ledger.let_go(connection, state)
        return "another process is at it"

    def left(self, connection: psycopg.Connection, name: str) -> int:
        """Return how many events of a source are missing still."""
        return len(ledger.missing(connection, name))

    def _failed(
        self, connection: psycopg.Connection, state: ListingState, client: Client, error: CallFailed
    ) -> str:
        name, now = client.source.name, client.now
        known = ledger.listings(connection)[name]
        ledger.update_listing(
            connection,
            state,
            problem=str(error),
            failed_since=known.failed_since or now,
            due_at=now + max(error.after or RETRY, RETRY),
        )
        if known.problem != str(error):
            log.warning("source '%s': its sender was not asked: %s", state.source, error)
        return str(error)

    def _expect_one_source(self, client: Client) -> None:
        """Raise `CallFailed` where two sources ask for one list: which of them lacks an event, it does not say."""
        mine = account_of(client)
        for each in self._clients.values():
            with suppress(CallFailed):
                each.key()
                asks = each.source.reconcile and each.source.provider.listing and each is not client
                if not asks or account_of(each) != mine:
                    continue
                twins = f"sources '{client.source.name}' and '{each.source.name}'"
                break
        else:
            return
        raise CallFailed(
            f"{twins} ask for the list of one account, which does not say whose an event is; have one of them ask"
        )

    def close(self) -> None:
        """Close what is open."""
        if self._intake is not None:
            self._intake.close()
