"""Trusts a secret that a sender hands out, on first use: Asana, Notion and others choose it themselves.

It comes with an unsigned probe, which anyone who knows the URL can send. So the first is kept in the ledger
before the probe is answered, where `hookonce secrets list` shows it; the same one is answered again, another
one is refused until `hookonce secrets forget`. It verifies deliveries only where no secret is configured, and
only such sources ever cost a question to the ledger, once per `FRESH`.
"""

import hmac
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import psycopg

from providers import Reason, Rejected
from receiver import database
from receiver.committer import Committer, TooLate
from receiver.database import LedgerUnavailable
from receiver.ledger import handed
from receiver.sources import Source

log = logging.getLogger(__name__)

DEADLINE = timedelta(seconds=2)
FRESH = timedelta(seconds=1)
"""How long a process goes on with what it read: as long as a forgotten secret is good for elsewhere."""


class OtherSecret(Rejected):
    """A secret was handed out to a source that keeps another one."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is kept for a source; with a `secret`, that one is kept if none is."""

    source: str
    secret: str | None = field(default=None, repr=False)


class HandedOut:
    """The handed-out secrets as one process knows them: at most one per configured source."""

    def __init__(self, database_url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, str | None]] = {}
        self._committer: Committer[_Question, str | None] = Committer(lambda: _Lane(database_url))

    def armed(self, source: Source) -> Source:
        """Give the source with the secret its sender handed out, if it has no other and may have that.

        Raises `LedgerUnavailable`.
        """
        if source.secrets or not may_be_handed(source):
            return source
        read_at, secret = self._known.get(source.name, (float("-inf"), None))
        if self._clock() - read_at > FRESH.total_seconds():
            secret = self._ask(_Question(source.name))
        return replace(source, secrets=(secret,)) if secret else source

    def take(self, source: Source, secret: str) -> None:
        """Keep a secret that was handed out, or see that it is the one that is kept.

        Raises `OtherSecret`, `Rejected` for what can be no secret of this sender, `LedgerUnavailable`.
        """
        try:
            if source.provider.check_secret:
                source.provider.check_secret(secret)
        except ValueError:
            raise Rejected(Reason.BAD_BODY, "what was handed out is no secret") from None
        kept = self._ask(_Question(source.name, secret))
        if kept is None or not hmac.compare_digest(kept.encode(), secret.encode()):
            log.warning(
                "another secret was handed out and refused; `hookonce secrets forget` makes room for it",
                extra={"source": source.name},
            )
            raise OtherSecret(
                Reason.BAD_SIGNATURE,
                f"source '{source.name}' keeps another secret; `hookonce secrets forget {source.name}` makes room",
            )

    def close(self) -> None:
        """Close the connection."""
        self._committer.close()

    def _ask(self, question: _Question) -> str | None:
        try:
            kept = self._committer.submit(question, DEADLINE)
        except TooLate:
            raise LedgerUnavailable("the ledger did not answer in time") from None
        self._known[question.source] = (self._clock(), kept)
        return kept


def may_be_handed(source: Source) -> bool:
    """Say whether a source's sender could hand out the secret that it signs with."""
    provider = source.provider
    return provider.handshake is not None and provider.needs_secret and not source.unauthenticated


class _Lane:
    """Answers questions on a connection of its own; a broken one is replaced once per batch."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._connection: psycopg.Connection | None = None

    def __call__(self, questions: Sequence[_Question]) -> list[str | None]:
        """Give what is kept, for each question."""
        try:
            return [self._answer(question) for question in questions]
        except psycopg.Error:
            self.close()
        try:
            return [self._answer(question) for question in questions]
        except psycopg.Error as error:
            self.close()
            raise LedgerUnavailable(f"PostgreSQL failed twice: {type(error).__name__}") from None

    def _answer(self, question: _Question) -> str | None:
        connection = self._connection = self._connection or database.connect(self._url)
        if question.secret is not None and handed.keep(connection, question.source, question.secret):
            log.warning(
                "a secret was handed out and is kept; `hookonce secrets list` shows it",
                extra={"source": question.source},
            )
        return handed.kept(connection, question.source)

    def close(self) -> None:
        """Close the connection; the next batch opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
