"""`hookonce dev --from`: events of another inbox come into this one, and the handlers at hand run on them.

Each is stored once, by its source and id, in the order of the other ledger; as a test event, unless one says otherwise.
Three headers say where it came from. Nothing is done or changed at the other side.
"""

import hashlib
import threading
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from pydantic import ValidationError

from hookonce.providers import Delivery
from hookonce.receiver.cli.connections import operator
from hookonce.receiver.cli.exported_event import ExportedEvent, why_refused
from hookonce.receiver.cli.output.printing import echo, say
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.pulled import ODD, Status, origin_headers, why_missing
from hookonce.receiver.dev.stack import Stack
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.replay import transfer
from hookonce.receiver.ledger.replay.transfer import Taken
from hookonce.receiver.ledger.store import NewEvent
from hookonce.receiver.outbound.signing import EventName, NotSigned, signed_anew
from hookonce.receiver.privacy.at_rest import imported
from hookonce.receiver.redis.workers import notify
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.errors import RemoteError
from hookonce.receiver.remote.profiles import Profile
from hookonce.receiver.remote.pull import CursorFile, Page, Puller, Wanted

_STORE_AGAIN = 1.0
"""Seconds after which a ledger that was away is tried again."""


@dataclass(frozen=True, slots=True)
class Origin:
    """From where, which events, and how they are taken."""

    profile: Profile
    wanted: Wanted
    follows: bool
    is_test: bool

    @property
    def file_name(self) -> str:
        """The name of the cursor's file, one for each inbox and filter."""
        said = "\0".join((self.profile.url, self.wanted.source or "", self.wanted.type or ""))
        return f"pull-{hashlib.sha256(said.encode()).hexdigest()[:16]}.json"


class Pulling:
    """One pull into the stack that runs."""

    def __init__(self, running: Stack, origin: Origin) -> None:
        self._running = running
        self._origin = origin
        self._status = Status(self._tell, "new")
        self._has_told_odd = False
        self._is_away = False
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
                    self._status.say(page.behind)
            if not ended.is_set():
                self._status.say(0, is_last=True)
        except (RemoteError, OSError) as error:
            echo(f"hookonce: nothing more is pulled: {error}", err=True)
        finally:
            client.close()
            self._disconnect()

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
                self._store(events)
            except (psycopg.Error, connections.LedgerUnavailable) as error:
                if not self._is_away:
                    self._tell(f"the ledger here takes nothing ({type(error).__name__}); it is tried again")
                self._is_away = True
                self._disconnect()
                ended.wait(_STORE_AGAIN)
            else:
                self._is_away = False
                with suppress(Exception):  # workers look by themselves, too
                    notify(settings.redis_url)
                return True
        return not events

    def _store(self, events: Sequence[NewEvent]) -> None:
        self._connection = self._connection or connections.connect(self._running.settings.database_url)
        taken = Taken()
        transfer.take(self._connection, events, operator(), taken, run=True, in_order=True)
        self._status.add("new", taken.new)
        self._status.add("known", taken.known)
        self._status.add("known with another body", taken.conflicts)

    def _event(self, shown: dict[str, object]) -> NewEvent | None:
        """Return an event as it is stored here; None for what can't be run, which is counted."""
        if (why := why_missing(shown)) is not None:
            self._status.add(why)
            return None
        try:
            event = ExportedEvent.model_validate(shown)
            if shown.get("is_redacted"):
                self._sign_anew(event)
            event.headers |= origin_headers(self._origin.profile.url, shown)
            return event.event()._replace(is_test=self._origin.is_test or event.is_test)
        except ValidationError as error:
            self._odd(why_refused(error))
        except ValueError:
            self._odd("body_b64: expected base64")
        return None

    def _sign_anew(self, event: ExportedEvent) -> None:
        """Sign a redacted body with the secret that its source has here, in place; its own signature fits no more."""
        source = self._running.settings.sources.get(event.source)
        if source is None or source.provider.name != event.provider or event.is_element:
            return
        body = b64decode(event.body_b64 or "", validate=True)
        stored = Delivery(source.provider.methods[0], event.url, event.headers, body)
        name, secret = EventName(event.event_id, event.type), next(iter(source.secrets), "")
        with suppress(NotSigned):
            signed = signed_anew(source.provider, secret, stored, name, datetime.now(UTC))
            event.headers, event.body_b64 = dict(signed.headers), b64encode(signed.body).decode()

    def _odd(self, why: str) -> None:
        if not self._has_told_odd:
            self._tell(f"an event is {ODD}: {clean(why)}")
        self._has_told_odd = True
        self._status.add(ODD)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _tell(self, text: str) -> None:
        say(f"{clean(self._origin.profile.name)[:12]:<12}  {'pulled':<9}  {text}")
