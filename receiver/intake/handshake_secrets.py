"""Trusts a secret that a sender hands out, on first use: Asana, Notion and others choose it themselves.

It comes with an unsigned probe, which anyone who knows the URL can send. So the first is kept in the ledger
before the probe is answered, where `hookonce sources secrets list` shows it; the same one is answered again, another
one is refused until `hookonce sources secrets forget`. It verifies deliveries only where no secret is configured, and
only such sources ever cost a question to the ledger, once per `SECRET_TTL`.
"""

import hmac
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import psycopg

from hookonce.providers import Reason, Rejected
from hookonce.receiver.encryption import OFF, CannotDecrypt, Keyring
from hookonce.receiver.intake.group_commit import GroupCommit
from hookonce.receiver.ledger import handshake_secrets
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import Waits
from hookonce.receiver.source import Source

log = limited(__name__)

LOOKUP_DEADLINE = timedelta(seconds=2)
SECRET_TTL = timedelta(seconds=1)
"""How long a process goes on with what it read: as long as a forgotten secret is good for elsewhere."""


class SecretMismatch(Rejected):
    """A secret was handed out to a source that keeps another one."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A question for the secret of a source; with a `secret`, that one is kept if none is."""

    source: str
    secret: str | None = field(default=None, repr=False)


class HandshakeSecrets:
    """The handed-out secrets as one process knows them: at most one per configured source."""

    def __init__(
        self, database_url: str, clock: Callable[[], float] = time.monotonic, keyring: Keyring = OFF
    ) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, str | None]] = {}
        self._group_commit: GroupCommit[_Question, str | None] = GroupCommit(
            lambda: _BatchLookup(database_url, keyring)
        )

    def with_secret(self, source: Source) -> Source:
        """Return the source with the secret its sender handed out, if it has no other and may have that.

        Raises `LedgerUnavailable`.
        """
        if source.secrets or not accepts_handshake_secret(source):
            return source
        read_at, secret = self._known.get(source.name, (float("-inf"), None))
        if self._clock() - read_at > SECRET_TTL.total_seconds():
            secret = self._ask(_Question(source.name))
        return replace(source, secrets=(secret,)) if secret else source

    def accept(self, source: Source, secret: str) -> None:
        """Keep a secret that was handed out, or see that it is the one that is kept.

        Raises `SecretMismatch`, `Rejected` for what can't be a secret of this sender, `LedgerUnavailable`.
        """
        try:
            if source.provider.check_secret:
                source.provider.check_secret(secret)
        except ValueError:
            raise Rejected(Reason.BAD_BODY, "what was handed out is not a secret") from None
        kept = self._ask(_Question(source.name, secret))
        if kept is None or not hmac.compare_digest(kept.encode(), secret.encode()):
            log.warning(
                "another secret was handed out and refused; `hookonce sources secrets forget` makes room for it",
                extra={"source": source.name},
            )
            raise SecretMismatch(
                Reason.BAD_SIGNATURE,
                f"source '{source.name}' keeps another secret; "
                f"`hookonce sources secrets forget {source.name}` makes room",
            )

    def close(self) -> None:
        """Close the connection."""
        self._group_commit.close()

    def _ask(self, question: _Question) -> str | None:
        kept = self._group_commit.submit(question, LOOKUP_DEADLINE)
        self._known[question.source] = (self._clock(), kept)
        return kept


def accepts_handshake_secret(source: Source) -> bool:
    """Whether a source's sender could hand out the secret that it signs with."""
    provider = source.provider
    return provider.handshake is not None and provider.needs_secret and not source.unauthenticated


class _BatchLookup:
    """Answers questions on a connection of its own; a broken one is replaced once per batch."""

    def __init__(self, database_url: str, keyring: Keyring) -> None:
        self._url = database_url
        self._keyring = keyring
        self._connection: psycopg.Connection | None = None

    async def commit(self, questions: Sequence[_Question], waits: Waits) -> list[str | None]:
        """Return what is kept, for each question."""
        return await waits.ask_server(self._answers, questions)

    def _answers(self, questions: Sequence[_Question]) -> list[str | None]:
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
        connection = self._connection = self._connection or connections.connect(self._url)
        if question.secret is not None and handshake_secrets.keep(
            connection, question.source, question.secret, self._keyring
        ):
            log.warning(
                "a secret was handed out and is kept; `hookonce sources secrets list` shows it",
                extra={"source": question.source},
            )
        try:
            return handshake_secrets.kept(connection, question.source, self._keyring)
        except CannotDecrypt as error:
            raise LedgerUnavailable(f"the secret that was handed out can't be opened: {error}") from None

    async def rest(self, _waits: Waits) -> None:
        """Do nothing: answers are all there is."""

    def close(self) -> None:
        """Close the connection; the next batch opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
