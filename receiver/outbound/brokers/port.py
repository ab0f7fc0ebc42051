"""The port to brokers: messages that go out with an outcome each, and messages that are taken and acknowledged.

An outcome is None where the broker has confirmed the message; nothing else is success. Texts of errors name the place
and quote nothing of a message.
"""

import asyncio
import re
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from hookonce.receiver.config.addresses import Address

CONNECT_TIMEOUT: Final = 3.0
PUBLISH_TIMEOUT: Final = 10.0
"""Seconds until all of a batch is confirmed, or what is not counts as lost on its way."""
CALL_TIMEOUT: Final = CONNECT_TIMEOUT + PUBLISH_TIMEOUT + 1
"""Seconds for all that one call of a `Broker` does."""
_ASCII: Final = "".join(map(chr, range(0x20, 0x7F)))
_PRINTABLE: Final = re.sub('[ "%]', "", _ASCII)


class Message(NamedTuple):
    """A message to be sent; `group` orders it where the broker has groups, `headers` are those of CloudEvents."""

    id: str
    type: str
    group: str
    headers: Mapping[str, str]
    body: bytes


class Taken(NamedTuple):
    """A message that came, and how often it was delivered so far, if the broker counts; `handle` is the broker's."""

    id: str
    headers: Mapping[str, str]
    body: bytes
    deliveries: int
    handle: Any


class NotConfirmed(Exception):  # noqa: N818  a state of the world
    """A message that its broker has not confirmed."""


class Refused(NotConfirmed):
    """The broker answers, and does not take it."""


class Never(Refused):
    """It will never be taken: it is larger than the broker takes, or no more messages are wanted."""


class Away(NotConfirmed):
    """The broker does not answer, or not in time: it may have the message. It may ask for seconds to `wait`."""

    def __init__(self, text: str, wait: float | None = None) -> None:
        """Keep how long is to be waited."""
        super().__init__(text)
        self.wait = wait


class Busy(Away):
    """The place is there, and asks to wait."""


class Found(NamedTuple):
    """The result of a look at a broker: `remembers` says for how long it knows ids; None where it knows none."""

    text: str
    remembers: timedelta | None = None


Outcome = NotConfirmed | None


class Broker(ABC):
    """One place of a broker, used on one event loop: connected with the first call, and anew after it broke.

    All methods but `publish` and `close` raise `NotConfirmed`.
    """

    def __init__(self, address: Address) -> None:
        """Keep the address."""
        self.address = address
        self.connecting = asyncio.Lock()
        self.under_way: set[asyncio.Future[Any]] = set()

    async def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send messages; return an outcome for each, in their order."""
        outcomes: dict[str, Outcome] = {}
        try:
            async with self.reached():
                await self.send(messages, outcomes)
        except NotConfirmed as error:
            return [outcomes.get(each.id, error) for each in messages]
        return [outcomes[each.id] for each in messages]

    @abstractmethod
    async def send(self, messages: Sequence[Message], outcomes: dict[str, Outcome]) -> None:
        """Send messages, adding outcomes by their ids. Raises what the client raises where it concerns them all."""

    @abstractmethod
    async def fetch(self, most: int) -> Sequence[Taken]:
        """Wait for messages for a second or so; return so many at most."""

    @abstractmethod
    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Have the broker forget messages; one whose acknowledgement is lost comes again, and is known then."""

    @abstractmethod
    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """Have the broker deliver messages again, later if it can."""

    @abstractmethod
    async def look(self) -> Found:
        """Look whether the place is there and may be used; nothing is sent or taken."""

    async def close(self) -> None:  # noqa: B027  the port of those that keep no connection
        """Let go of the connection, whatever its state; what was not acknowledged comes again."""

    def failure(self, error: BaseException) -> NotConfirmed:
        """Return what an error of the client comes to."""
        if isinstance(error, NotConfirmed):
            return error
        return Away(f"{self.address.shown} does not answer: {type(error).__name__}")

    @asynccontextmanager
    async def reached(self) -> AsyncIterator[None]:
        """Raise `NotConfirmed` for what the client raises, and after `CALL_TIMEOUT`; let go of what broke."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                yield
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  clients cancel what waits for them
            failed = self.failure(error)
            if isinstance(failed, Away):
                await self.close()
            raise failed from None

    async def outcomes_of(self, calls: Iterable[Awaitable[object]]) -> list[Outcome]:
        """Make calls at once, and return the outcome of each."""
        made = list(map(asyncio.ensure_future, calls))
        self.under_way |= {*made}
        for each in made:
            each.add_done_callback(self.under_way.discard)
        answers = await asyncio.gather(*made, return_exceptions=True)
        found = [self.failure(each) if isinstance(each, BaseException) else None for each in answers]
        if any(isinstance(each, Away) for each in found):
            await self.close()
        return found

    async def settle(self, calls: Iterable[Awaitable[object]]) -> None:
        """Make calls at once. Raises `NotConfirmed` where one fails."""
        for failed in filter(None, await self.outcomes_of(calls)):
            raise failed


class Publisher:
    """Sends messages from any thread, by an event loop in a thread of its own; to be made anew after a fork.

    `close` ends the thread and the connection; it is called by itself once nothing needs them, or the process ends.
    """

    def __init__(self, broker: Broker) -> None:
        """Start the thread."""
        self._broker = broker
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_run, args=[broker, self._loop], daemon=True, name="hookonce-broker")
        thread.start()
        self.close = weakref.finalize(self, _close, self._loop, thread)

    def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send messages; return an outcome for each, in their order."""
        return asyncio.run_coroutine_threadsafe(self._broker.publish(messages), self._loop).result()


def _run(broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    with suppress(TimeoutError):
        loop.run_until_complete(asyncio.wait_for(broker.close(), 2))
    loop.close()


def _close(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if thread.is_alive():  # and not of the process before a fork
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():  # where garbage may be collected, too
            thread.join(2)


def encoded(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers as CloudEvents has them where texts are bytes: percent-encoded but for what can be printed.

    A content type stays as it is, but for what no header can hold.
    """
    return {
        name: quote(value, safe=_ASCII if name == "content-type" else _PRINTABLE, errors="replace")
        for name, value in headers.items()
        if value
    }
