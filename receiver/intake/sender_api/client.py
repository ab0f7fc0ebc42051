"""Calls of one source's sender: proven with its key, and never more than a tenth of what the sender allows."""

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

import psycopg

from hookonce.providers.kit.calls import Answer, CallFailed, Listing, Renewal, Request
from hookonce.receiver.config.secret_references import resolve
from hookonce.receiver.ledger.maintenance import sender_api as ledger
from hookonce.receiver.outbound.api_calls import Call, call
from hookonce.receiver.source import Source

SHARE: Final = 10
"""One call of ours to this many that the sender allows."""
TOKEN_TTL: Final = timedelta(minutes=8)
"""How long a token is used: senders give them ten minutes or an hour."""
_HOUR: Final = timedelta(hours=1)
_PER_HOUR_OF_RENEWALS: Final = 1000


class Means(NamedTuple):
    """How calls are made: who sends them, what time it is, how to wait, and where keys are looked up."""

    call: Call = call
    now: Callable[[], datetime] = partial(datetime.now, UTC)
    sleep: Callable[[float], object] = time.sleep
    environ: Mapping[str, str] = os.environ


class Client:
    """The API of one source's sender; `connection` counts the calls, for all processes."""

    def __init__(self, source: Source, means: Means) -> None:
        self.source = source
        self.means = means
        self._token: tuple[str, datetime] | None = None
        self._free_at = means.now()

    @property
    def now(self) -> datetime:
        """The time, by the clock of these calls."""
        return self.means.now()

    def key(self) -> str:
        """Return the key. Raises `CallFailed` where it is not in this process."""
        try:
            found = resolve(self.source.api_key, self.means.environ)
        except ValueError as error:
            raise CallFailed(f"api_key: {error}") from None
        if not found:
            raise CallFailed("api_key: nothing is there")
        return found

    def token(self, connection: psycopg.Connection, way: Listing | Renewal) -> str:
        """Return what requests are proven with. Raises `CallFailed`."""
        if self._token and self._token[1] > self.now:
            return self._token[0]
        key = self.key()
        made = way.token(key, self.now) if way.token else key
        if isinstance(made, Request):
            if way.read_token is None:
                raise CallFailed("the sender's module reads no token")
            made = way.read_token(self._send(connection, way, made, 1))
        if not made.isascii() or not made.isprintable():
            raise CallFailed("api_key: it has characters that no key has")
        self._token = made, self.now + TOKEN_TTL
        return made

    def send(
        self, connection: psycopg.Connection, way: Listing | Renewal, request: Request, cost: int = 1
    ) -> Answer:
        """Send a request when it is its turn; a token that is refused is not used again. Raises `CallFailed`."""
        answer = self._send(connection, way, request, cost)
        if answer.status in {401, 403}:
            self._token = None
        return answer

    def _send(
        self, connection: psycopg.Connection, way: Listing | Renewal, request: Request, cost: int
    ) -> Answer:
        if isinstance(way, Listing):
            self.means.sleep(max(0.0, (self._free_at - self.now).total_seconds()))
            self._free_at = self.now + timedelta(minutes=1) * SHARE * cost / way.per_minute
        most = way.per_hour // SHARE if isinstance(way, Listing) else _PER_HOUR_OF_RENEWALS
        if not ledger.spend(connection, self.source.api_key, self.now, most):
            rest = _HOUR - (self.now - self.now.replace(minute=0, second=0, microsecond=0))
            raise CallFailed(
                "a tenth of what its sender allows in an hour is used; goes on after it", after=rest
            )
        return self.means.call(request, way.hosts)


def account_of(client: Client) -> str:
    """Return what tells one account of a sender from another, as far as a key and an address do."""
    return json.dumps([client.source.provider.name, client.source.api or client.key()])
