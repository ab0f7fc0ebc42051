"""`hookonce dev --from`: events of another inbox come into this one, and the handlers at hand run on them.

Each is stored once, by its source and id, in the order of the other ledger; as a test event, unless one says otherwise.
Three headers say where it came from. Nothing is done or changed at the other side.
"""

import threading
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from hookonce.providers import Delivery
from hookonce.receiver.cli.connections import UNREACHABLE
from hookonce.receiver.cli.desk import own_desk
from hookonce.receiver.cli.output.printing import echo, say
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.pulled import Skipped, Status, file_name, origin_headers, read
from hookonce.receiver.desk.feeds.transfer import ExportedEvent, take_in
from hookonce.receiver.dev.stack import Stack
from hookonce.receiver.outbound.signing import EventName, NotSigned, signed_anew
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


class Pulling:
    """One pull into the stack that runs."""

    def __init__(self, running: Stack, origin: Origin) -> None:
        self._running = running
        self._origin = origin
        self._status = Status(self._tell, "new")

    def follow(self, ended: threading.Event) -> None:
        """Pull until `ended` is set, or all is there; what goes wrong is told, and ends no more than the pull."""
        client = Client(self._origin.profile)
        name = file_name("pull", self._origin.profile, self._origin.wanted)
        file = CursorFile(self._running.settings.data / name)
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

    def take(self, page: Page, ended: threading.Event) -> bool:
        """Store a page, trying until the ledger does; False if that did not come to be."""
        events = [event for shown in page.events if (event := self._event(shown)) is not None]
        is_away = False
        while events and not ended.is_set():
            try:
                with own_desk(self._running.settings) as here:
                    taken = take_in(here, events, run=True, in_order=True)
            except UNREACHABLE as error:
                if not is_away:
                    self._tell(f"the ledger here takes nothing ({type(error).__name__}); it is tried again")
                is_away = True
                ended.wait(_STORE_AGAIN)
            else:
                self._status.add("new", taken.new)
                self._status.add("known", taken.known)
                self._status.add("known with another body", taken.conflicts)
                return True
        return not events

    def _event(self, shown: dict[str, object]) -> ExportedEvent | None:
        """Return an event as it is stored here; None for what can't be run, which is counted."""
        try:
            event = read(ExportedEvent, shown)
        except Skipped as skipped:
            self._status.skip(skipped)
            return None
        if shown.get("is_redacted"):
            self._sign_anew(event)
        event.headers |= origin_headers(self._origin.profile.url, shown)
        event.is_test = event.is_test or self._origin.is_test
        return event

    def _sign_anew(self, event: ExportedEvent) -> None:
        """Sign a redacted body with the secret that its source has here, in place; its own signature fits no more."""
        source = self._running.settings.sources.get(event.source)
        if source is None or source.provider.name != event.provider or event.is_element:
            return
        stored = Delivery(source.provider.methods[0], event.url, event.headers, event.content)
        name, secret = EventName(event.event_id, event.type), next(iter(source.secrets), "")
        with suppress(NotSigned):
            signed = signed_anew(source.provider, secret, stored, name, datetime.now(UTC))
            event.headers, event.body_b64 = dict(signed.headers), b64encode(signed.body).decode()

    def _tell(self, text: str) -> None:
        say(f"{clean(self._origin.profile.name)[:12]:<12}  {'pulled':<9}  {text}")
