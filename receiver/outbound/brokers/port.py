"""The port to brokers: messages that go out with an outcome each, and messages that are taken and acknowledged.

An outcome is None where the broker has confirmed the message; nothing else is success. Texts of errors name the place
and quote nothing of a message.
"""

import asyncio
import re
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OutOfTime
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

CONNECT_TIMEOUT: Final = 3.0
PUBLISH_TIMEOUT: Final = 10.0
"""Seconds until all of a batch is confirmed, or what is not counts as lost on its way."""
_ASCII: Final = "".join(map(chr, range(0x20, 0x7F)))
_PRINTABLE: Final = re.sub('[ "%]', "", _ASCII)
Result = TypeVar("Result")


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


class TooLarge(Refused):
    """It is larger than the broker takes, for good."""


class Away(NotConfirmed):
    """The broker does not answer, or not in time: it may have the message."""


class Found(NamedTuple):
    """The result of a look at a broker: `remembers` says for how long it knows ids; None where it knows none."""

    text: str
    remembers: timedelta | None = None


Outcome = NotConfirmed | None


class Publisher(Protocol):
    """Sends messages to one place; safe in many threads, and to be made anew after a fork."""

    def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send messages; return an outcome for each, in their order."""

    def look(self) -> Found:
        """Look whether the place is there and may be written to; nothing is sent. Raises `NotConfirmed`."""

    def close(self) -> None:
        """Let go of the connection."""


class Subscription(Protocol):
    """Takes messages from one place, on the running event loop. All but `close` raise `NotConfirmed`."""

    async def fetch(self, most: int) -> Sequence[Taken]:
        """Wait for messages for a second or so; return so many at most."""

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """Have the broker forget messages."""

    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """Have the broker deliver messages again, later if it can."""

    async def look(self) -> Found:
        """Look whether the place is there and may be read; nothing is taken."""

    async def close(self) -> None:
        """Let go of the connection; what was not acknowledged comes again."""


def encoded(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers as CloudEvents has them where texts are bytes: percent-encoded but for what can be printed.

    A content type stays as it is, but for what no header can hold.
    """
    return {
        name: quote(value, safe=_ASCII if name == "content-type" else _PRINTABLE, errors="replace")
        for name, value in headers.items()
        if value
    }


@dataclass
class LoopThread:
    """An event loop in a thread of its own, for clients that are coroutines."""

    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, Result], seconds: float) -> Result:
        """Run a coroutine and return what it returns. Raises what it raises, and `Away` where it takes longer."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, daemon=True, name="hookonce-broker"
            )
            self._thread.start()
        future: Future[Result] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(seconds)
        except OutOfTime:
            raise Away(f"no answer within {seconds:g} s") from None
        finally:
            future.cancel()

    def close(self) -> None:
        """End the thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            if self._thread is not None:
                self._thread.join()
            self._loop.close()
            self._loop = None
