"""Takes in what was refused and is genuine after all: a secret, our URL or our clock was wrong.

Each delivery is checked as of its arrival by the database's clock, with the secrets and the URL there are now, and goes
the way of any delivery: so the sender's own retry is a duplicate, before or after. What fails stays where it is until
its time is over; a delivery that was stale when it came is stale still. A process killed in between leaves a
delivery that is in the ledger and in quarantine: the next one finds a duplicate and lets it go.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import urlsplit

import psycopg

from hookonce.providers import Rejected
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import RETRY_MARGIN, Settings, require_servers
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.intake.handshake_secrets import accepts_handshake_secret
from hookonce.receiver.intake.intake_result import IntakeResult
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.decryption import unpack
from hookonce.receiver.ledger.quarantine import Held
from hookonce.receiver.ledger.store import Verdict
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.source import MAX_QUARANTINE_TIME, Source


@dataclass(slots=True)
class Reverified:
    """The outcome of the deliveries that were looked at.

    genuine: taken in, or would be, with so many events `accepted` and `duplicates` (not told apart in a dry run);
    empty: genuine, but a probe or without events; refused: by reason, and kept; unopened: sealed with a key that is
    not here, or changed since
    """

    genuine: int = 0
    accepted: int = 0
    duplicates: int = 0
    empty: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    unopened: int = 0

    @property
    def looked_at(self) -> int:
        """How many were looked at."""
        return self.genuine + self.empty + sum(self.refused.values()) + self.unopened


def reverify(  # noqa: PLR0913  the last by keyword
    settings: Settings,
    connection: psycopg.Connection,
    source: Source,
    since: datetime,
    who: str,
    *,
    dry_run: bool = False,
) -> Iterator[Reverified]:
    """Check what came to `source` since then again; yield how far it is after each. What is taken in is audited.

    `connection` is in autocommit mode. Safe beside others, and to be stopped. Raises `ConfigError` where there is no
    secret to check with, and `LedgerUnavailable`: what was not taken in stays.
    """
    require_servers(settings)
    if not _can_verify(source):
        raise ConfigError(
            [f"source '{source.name}' has no signing secret to verify with here; set {source.secret_places}"]
        )
    bounds = source.quarantine
    kept = source.keep_events or settings.keep_events
    time = min(bounds.time if bounds else MAX_QUARANTINE_TIME, kept - RETRY_MARGIN)
    intake = Intake(settings)
    try:
        checker = _Checker(settings, source, intake, store=not dry_run)
        for number in quarantine.numbers(connection, source.name, since, time):
            checker.check(connection, number, who)
            yield checker.done
    finally:
        intake.close()


def _can_verify(source: Source) -> bool:
    has_secret = bool(source.secrets) or not source.provider.needs_secret
    return has_secret or source.unauthenticated or accepts_handshake_secret(source)


class _Checker:
    """Checks deliveries of one source, each in a transaction of its own."""

    def __init__(self, settings: Settings, source: Source, intake: Intake, *, store: bool) -> None:
        self.done = Reverified()
        self._keyring = settings.keyring
        self._source = source
        self._intake = intake
        self._store = store

    def check(self, connection: psycopg.Connection, number: int, who: str) -> None:
        """Check one, unless somebody else is at it, or was."""
        with connection.transaction():
            held = quarantine.locked(connection, number)
            outcome = None if held is None else self._verified(held)
            if held is None or outcome is None:
                return
            self._count(outcome)
            if self._store:
                events = [event_id for event_id, _ in outcome.events]
                quarantine.let_go(connection, held, who, {"reason": held.reason, "events": events})

    def _verified(self, held: Held) -> IntakeResult | None:
        """Verify and take in; None for what is not genuine, or can't be told."""
        try:
            delivery = unpack(held.opened(self._keyring))
            sent_to = urlsplit(delivery.url)
            delivery = replace(delivery, url=self._source.url_of(sent_to.path, sent_to.query))
            return self._intake.reverify(self._source, delivery, held.arrived_at, store=self._store)
        except CannotDecrypt:
            self.done.unopened += 1
        except Rejected as error:
            self._refuse(error.reason.value)
        except KeyUnavailable:
            self._refuse("key_unavailable")
        return None

    def _refuse(self, reason: str) -> None:
        self.done.refused[reason] = self.done.refused.get(reason, 0) + 1

    def _count(self, outcome: IntakeResult) -> None:
        if not outcome.events:
            self.done.empty += 1
            return
        self.done.genuine += 1
        known = sum(verdict in {Verdict.DUPLICATE, Verdict.CONFLICT} for _, verdict in outcome.events)
        self.done.duplicates += known
        self.done.accepted += len(outcome.events) - known
