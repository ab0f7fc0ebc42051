"""Sends the events of another inbox on to a program, in order and one at a time, as their senders would.

How far it is, and whether the program took the event, is noted before the next event is sent. Where nothing listens,
the event waits: a program that starts again has missed nothing.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field

from hookonce.providers import Delivery
from hookonce.receiver.cli.listen.signers import NoSigner, Signers
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.printing import echo, say
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.pulled import Skipped, Status, origin_headers, read
from hookonce.receiver.desk.feeds.transfer import ExportedEvent
from hookonce.receiver.outbound.forwarding import NotSent, send
from hookonce.receiver.outbound.signing import EventName, NotSigned, signed_anew
from hookonce.receiver.remote.pull import CursorFile, Page

TRY_AGAIN = timedelta(seconds=0.5)
"""After which a target where nothing listened is tried again."""
_SHOWN = 200
"""Bytes of an answer that is no success."""


class _Event(ExportedEvent):
    """An event as a pull gives it, with its number in the other ledger."""

    id: int = Field(ge=1)

    @property
    def words(self) -> str:
        """How a line names it."""
        return f"{clean(self.type)}  {clean(self.event_id)}  {self.id}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an event: whether the program took it, None if it was not sent."""

    event: int
    is_taken: bool | None


class Forwarder:
    """Sends events of the inbox at `origin` to a `target`, in which `{source}` stands for the name of their source."""

    def __init__(
        self, origin: str, target: str, timeout: timedelta, signers: Signers, file: CursorFile
    ) -> None:
        self._origin = origin
        self._target = target
        self._timeout = timeout
        self._signers = signers
        self._file = file
        self.is_sending = False
        self._is_waiting = False
        self._behind = 0
        self.status = Status(self.tell, "sent", "failed")

    def page(self, page: Page, ended: threading.Event) -> bool:
        """Send what was not sent before of a page; False if `ended` came between."""
        for place, shown in enumerate(page.events, 1):
            number = shown.get("id")
            if isinstance(number, int) and number <= self._file.kept.sent:
                continue
            self._behind = page.behind + len(page.events) - place
            self.is_sending = True
            outcome = self.send(shown, ended)
            if outcome is not None:
                self._file.note(outcome.event, has_failed=outcome.is_taken is False, is_next=True)
            self.is_sending = False
            if outcome is None or ended.is_set():
                return False
            self.status.say(self._behind)
        self.status.say(page.behind)
        return not ended.is_set()

    def send(self, shown: Mapping[str, Any], ended: threading.Event | None) -> Outcome | None:
        """Send an event; None if `ended` came first. Without `ended` nothing is waited for."""
        number = shown.get("id")
        event = number if isinstance(number, int) else 0
        try:
            pulled = read(_Event, shown)
            self.introduce(pulled.source, pulled.provider)
            return self._sent(pulled, shown, ended)
        except Skipped as skipped:
            self.status.skip(skipped)
        return Outcome(event, None)

    def introduce(self, source: str, provider: str) -> None:
        """Tell with which secret the events of a source are signed, or why they can't be; once."""
        if self._signers.is_known(source, provider):
            return
        try:
            first, *rest = self._signers.of(source, provider).introduction()
        except NoSigner as error:
            first, rest = f"not sent on: {error}", []
        for line in [f"{source:<12}  {first}", *rest]:
            echo(clean(line))

    def tell(self, text: str) -> None:
        """Print a line about the pull."""
        say(f"{'':<12}  {'pulled':<9}  {text}")

    def _signed(self, pulled: _Event, shown: Mapping[str, Any]) -> Delivery:
        """Return an event as its sender would send it now, with what says where it came from."""
        try:
            signer = self._signers.of(pulled.source, pulled.provider)
            signed = signed_anew(
                signer.provider,
                signer.secret,
                Delivery(
                    "POST", self._target.replace("{source}", pulled.source), pulled.headers, pulled.content
                ),
                EventName(pulled.event_id, pulled.type),
                datetime.now(UTC),
                is_element=pulled.is_element,
            )
        except NoSigner:
            raise Skipped("of sources that can't be signed for") from None
        except NotSigned as error:
            raise Skipped("that can't be signed", f"{pulled.words}: {clean(str(error))}") from None
        return replace(signed, headers={**signed.headers, **origin_headers(self._origin, shown)})

    def _sent(
        self, pulled: _Event, shown: Mapping[str, Any], ended: threading.Event | None
    ) -> Outcome | None:
        while True:
            signed = self._signed(pulled, shown)  # anew at each try, since the signed time grows old
            try:
                answer = send(signed, self._timeout, reads=_SHOWN)
            except NotSent as error:
                if error.is_listening or ended is None:
                    return self._told(pulled, "no answer", f": {clean(str(error))}", is_taken=False)
                if not self._is_waiting:
                    self._is_waiting = True
                    self.tell(f"nothing listens at {clean(signed.url)}; it is tried again until it does")
                self.status.say(self._behind + 1)
                if ended.wait(TRY_AGAIN.total_seconds()):
                    return None
                continue
            self._is_waiting = False
            is_taken = 200 <= answer.status < 300  # noqa: PLR2004  HTTP's own classes
            said = clean(answer.text.strip())
            word = f"{answer.status} {answer.took // timedelta(milliseconds=1)} ms"
            return self._told(pulled, word, f": {said}" if said and not is_taken else "", is_taken=is_taken)

    def _told(self, pulled: _Event, word: str, said: str, *, is_taken: bool) -> Outcome:
        self.status.add("sent" if is_taken else "failed")
        painted = paint("ok" if is_taken else "fail", f"{word:<12}")
        say(f"{clean(pulled.source)[:12]:<12}  {painted}  {pulled.words}{said}")
        return Outcome(pulled.id, is_taken)
