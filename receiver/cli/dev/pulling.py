"""`hookonce dev --from`: events of another inbox come into this one, and the handlers at hand run on them.

Each is stored once, by its source and id, in the order of the other ledger; as a test event, unless one says otherwise.
Three headers say where it came from. Nothing is done or changed at the other side.
"""

import hashlib
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

import psycopg
from pydantic import ValidationError

from hookonce.receiver.cli.connections import operator
from hookonce.receiver.cli.dev.screen import echo, say
from hookonce.receiver.cli.exported_event import ExportedEvent, why_refused
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.dev.stack import Stack
from hookonce.receiver.ledger import transfer
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import NewEvent
from hookonce.receiver.ledger.transfer import Taken
from hookonce.receiver.privacy.at_rest import imported
from hookonce.receiver.redis.workers import notify
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.errors import RemoteError
from hookonce.receiver.remote.profiles import Profile
from hookonce.receiver.remote.pull import CursorFile, Page, Puller, Wanted

ORIGIN, RECEIVED_AT, REDACTED = "hookonce-origin", "hookonce-received-at", "hookonce-redacted"
"""Headers that a pulled event has besides its own."""
STATUS_EVERY = 5.0
"""Seconds between two lines that say how far it is."""
_STORE_AGAIN = 1.0
"""Seconds after which a ledger that was away is tried again."""
_ODD = "not as expected"
_MISSING = {"retention": "without a body", "key": "sealed", "scope": "not allowed to leave"}


@dataclass(frozen=True, slots=True)
class Origin:
    """From where, which events, and how they are taken."""

    profile: Profile
    wanted: Wanted
    follows: bool
    is_test: bool

    @property
    def file_name(self) -> str:
        """What the cursor's file is called: another for another inbox or filter."""
        said = "\0".join((self.profile.url, self.wanted.source or "", self.wanted.type or ""))
        return f"pull-{hashlib.sha256(said.encode()).hexdigest()[:16]}.json"


class Pulling:
    """One pull into the stack that runs."""

    def __init__(self, running: Stack, origin: Origin) -> None:
        self._running = running
        self._origin = origin
        self._taken = Taken()
        self._skipped: dict[str, int] = {}
        self._said_at = 0.0
        self._connection: psycopg.Connection | None = None

    def follow(self, ended: threading.Event) -> None:
        """Pull until `ended` is set, or all is there; what goes wrong is told, and ends no more than the pull."""
        client = Client(self._origin.profile)
        file = CursorFile(self._running.settings.data / self._origin.file_name)
        puller = Puller(client, self._origin.wanted, file, self._tell)
        try:
            with file.held():
                for page in puller.pages(ended, follows=self._origin.follows):
                    if not self.take(page, ended):
                        return
                    self._say_how_far(page.behind)
            if not ended.is_set():
                self._say_how_far(0, is_last=True)
        except (RemoteError, OSError) as error:
            echo(f"hookonce: nothing more is pulled: {error}", err=True)
        finally:
            client.close()
            if self._connection is not None:
                self._connection.close()

    def take(self, page: Page, ended: threading.Event) -> bool:
        """Store a page, trying until the ledger does; False if that did not come to be."""
        settings = self._running.settings
        events = [
            imported(event, settings.sources, settings.keyring)
            for shown in page.events
            if (event := self._event(shown)) is not None
        ]
        while events and not ended.is_set():
            try:
                self._connection = self._connection or connections.connect(settings.database_url)
                transfer.take(self._connection, events, operator(), self._taken, run=True, in_order=True)
            except (psycopg.Error, connections.LedgerUnavailable):
                if self._connection is not None:
                    self._connection.close()
                self._connection = None
                ended.wait(_STORE_AGAIN)
                continue
            with suppress(Exception):  # workers look by themselves, too
                notify(settings.redis_url)
            return True
        return not events

    def _event(self, shown: dict[str, object]) -> NewEvent | None:
        """Return an event as it is stored here; None for what can't be run, which is counted."""
        missing = shown.get("missing")
        if missing is not None:
            self._skip(_MISSING.get(str(missing), "without a body"))
            return None
        try:
            event = ExportedEvent.model_validate(shown)
            event.headers |= self._origin_of(shown)
            return event.event()._replace(is_test=self._origin.is_test or event.is_test)
        except ValidationError as error:
            why = why_refused(error)
        except ValueError:
            why = "body_b64: expected base64"
        if _ODD not in self._skipped:
            self._tell(f"an event is {_ODD}: {clean(why)}")
        self._skip(_ODD)
        return None

    def _origin_of(self, shown: dict[str, object]) -> dict[str, str]:
        said = {
            ORIGIN: f"{self._origin.profile.url} {shown.get('id')}",
            RECEIVED_AT: str(shown.get("received_at")),
        }
        if shown.get("is_redacted"):
            said[REDACTED] = "yes"
        return {name: clean(text) for name, text in said.items()}

    def _skip(self, why: str) -> None:
        self._skipped[why] = self._skipped.get(why, 0) + 1

    def _say_how_far(self, behind: int, *, is_last: bool = False) -> None:
        now = time.monotonic()
        if not is_last and now - self._said_at < STATUS_EVERY:
            return
        self._said_at = now
        known = f", {self._taken.known} known" if self._taken.known else ""
        other = f", {self._taken.conflicts} known with another body" if self._taken.conflicts else ""
        skipped = "".join(f", {number} {clean(why)}" for why, number in self._skipped.items())
        left = "; that is all of it" if is_last else f", {behind} behind"
        self._tell(f"{self._taken.new} new{known}{other}{skipped}{left}")

    def _tell(self, text: str) -> None:
        say(f"{clean(self._origin.profile.name)[:12]:<12}  {'pulled':<9}  {text}")
