"""NATS JetStream: a subject that a stream covers. The server knows ids for the stream's duplicate window, 2 minutes.

A connection that breaks is made anew with the next call: what was not confirmed by then may have arrived, and comes
again under its id.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeout
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers.port import (
    CONNECT_TIMEOUT,
    PUBLISH_TIMEOUT,
    Away,
    Found,
    LoopThread,
    Message,
    NotConfirmed,
    Outcome,
    Refused,
    Taken,
    TooLarge,
    encoded,
)

ID = "Nats-Msg-Id"
ACK_WAIT = timedelta(seconds=30)
"""How long a message that was taken is not delivered to others."""
_FETCH = 1.0
_FRAME = 512
"""Bytes that the frame of a message and its headers may take besides their texts."""


class _Connection:
    """One connection, made with the first call, and anew after it broke."""

    def __init__(self, address: Address) -> None:
        self.subject = address.path
        self.shown = address.shown
        self._server = address.server
        self._client: Client | None = None
        self.broken = asyncio.Event()

    async def jetstream(self) -> JetStreamContext:
        """Return what publishes and pulls. Raises `Away`."""
        if self._client is None or not self._client.is_connected or self.broken.is_set():
            await self.close()
            self.broken = broken = asyncio.Event()

            async def closed() -> None:
                broken.set()

            async def failed(_: Exception) -> None:
                """Errors are raised where they happen, too."""

            try:
                self._client = await nats.connect(
                    self._server,
                    name="hookonce",
                    connect_timeout=int(CONNECT_TIMEOUT),
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    disconnected_cb=closed,
                    closed_cb=closed,
                    error_cb=failed,
                )
            except (TimeoutError, OSError, NatsError) as error:
                raise Away(f"{self.shown} does not answer: {type(error).__name__}") from None
        return self._client.jetstream(publish_async_max_pending=1 << 16)

    @property
    def largest(self) -> int:
        """Bytes that a message may have."""
        return self._client.max_payload if self._client else 0

    async def close(self) -> None:
        """Close the connection, whatever its state."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # it is thrown away
                await asyncio.wait_for(client.close(), 1)

    async def look(self) -> Found:
        """Find the stream that covers the subject."""
        js = await self.jetstream()
        try:
            stream = await js.find_stream_name_by_subject(self.subject)
            config = (await js.stream_info(stream)).config
        except NotFoundError:
            raise Refused(f"no stream covers {self.subject}; make one, or name another subject") from None
        except (TimeoutError, NatsError) as error:
            raise Away(f"{self.shown}: JetStream does not answer ({type(error).__name__})") from None
        return Found(
            f"stream {stream} covers {self.subject}", timedelta(seconds=config.duplicate_window or 0)
        )


class NatsPublisher:
    """Publishes to one subject; all messages of a call are under way at once."""

    def __init__(self, address: Address) -> None:
        self._thread = LoopThread()
        self._connection = _Connection(address)

    def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """See `port.Publisher`."""
        try:
            return self._thread.run(self._publish(messages), CONNECT_TIMEOUT + PUBLISH_TIMEOUT + 1)
        except Away as error:
            return [error] * len(messages)

    async def _publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        connection = self._connection
        try:
            js = await connection.jetstream()
        except Away as error:
            return [error] * len(messages)
        sent: list[asyncio.Future[Any] | NotConfirmed] = []
        for each in messages:
            headers = {**encoded(each.headers), ID: each.id}
            size = len(each.body) + sum(len(name) + len(value) + 4 for name, value in headers.items())
            if size + _FRAME > connection.largest:
                sent.append(
                    TooLarge(f"{size:,} bytes are more than the {connection.largest:,} that the server takes")
                )
                continue
            try:
                sent.append(await js.publish_async(connection.subject, each.body, headers=headers))
            except (TimeoutError, OSError, NatsError) as error:
                sent.append(self._away(error))
        waiting = [each for each in sent if isinstance(each, asyncio.Future)]
        if waiting:
            broken = asyncio.ensure_future(connection.broken.wait())
            confirmed = asyncio.ensure_future(asyncio.wait(waiting, timeout=PUBLISH_TIMEOUT))
            await asyncio.wait([broken, confirmed], return_when=asyncio.FIRST_COMPLETED)
            broken.cancel()
            confirmed.cancel()
        outcomes = [each if isinstance(each, NotConfirmed) else self._outcome(each) for each in sent]
        if any(isinstance(each, Away) for each in outcomes):
            await connection.close()
        return outcomes

    def _outcome(self, answer: "asyncio.Future[Any]") -> Outcome:
        if not answer.done() or answer.cancelled():
            answer.cancel()
            return Away(f"{self._connection.shown} has not confirmed a message")
        error = answer.exception()
        if error is None:
            return None
        if isinstance(error, NoStreamResponseError):
            return Refused(f"no stream covers {self._connection.subject}; make one, or name another subject")
        if isinstance(error, APIError):
            return Refused(f"{self._connection.shown} refuses a message: {error.description}")
        return self._away(error)

    def _away(self, error: BaseException) -> Away:
        return Away(f"{self._connection.shown} does not answer: {type(error).__name__}")

    def look(self) -> Found:
        """See `port.Publisher`."""
        return self._thread.run(self._connection.look(), CONNECT_TIMEOUT + PUBLISH_TIMEOUT)

    def close(self) -> None:
        """See `port.Publisher`."""
        with suppress(Away):
            self._thread.run(self._connection.close(), 2)
        self._thread.close()


class NatsSubscription:
    """Pulls from one subject, as the durable consumer that the address names, or of the source's name."""

    def __init__(self, address: Address, name: str) -> None:
        self._connection = _Connection(address)
        self._durable = address.options.get("durable", f"hookonce-{name}")
        self._pull: JetStreamContext.PullSubscription | None = None

    async def fetch(self, most: int) -> Sequence[Taken]:
        """See `port.Subscription`."""
        pull = await self._subscribed()
        try:
            return [self._taken(each) for each in await pull.fetch(most, timeout=_FETCH)]
        except (TimeoutError, NatsTimeout):
            if self._connection.broken.is_set():
                raise await self._away("the connection broke") from None
            return []
        except (OSError, NatsError) as error:
            raise await self._away(type(error).__name__) from None

    async def _subscribed(self) -> JetStreamContext.PullSubscription:
        if self._pull is None or self._connection.broken.is_set():
            js = await self._connection.jetstream()
            config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, ack_wait=ACK_WAIT.total_seconds())
            try:
                self._pull = await js.pull_subscribe(self._connection.subject, self._durable, config=config)
            except NotFoundError:
                subject = self._connection.subject
                raise Refused(f"no stream covers {subject}; make one, or name another subject") from None
            except APIError as error:
                raise Refused(f"consumer {self._durable} can't be used: {error.description}") from None
            except (TimeoutError, OSError, NatsError) as error:
                raise await self._away(type(error).__name__) from None
        return self._pull

    @staticmethod
    def _taken(message: Msg) -> Taken:
        known = message.metadata
        own = f"{known.stream}:{known.sequence.stream}"
        return Taken(own, message.headers or {}, message.data, known.num_delivered or 1, message)

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """See `port.Subscription`; what gets lost on the way comes again, and is known then."""
        await self._settle([each.handle.ack() for each in taken])

    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """See `port.Subscription`."""
        await self._settle([each.handle.nak(delay.total_seconds()) for each in taken])

    async def _settle(self, calls: Sequence[Any]) -> None:
        for each in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(each, Exception):
                raise await self._away(type(each).__name__)

    async def _away(self, why: str) -> Away:
        await self.close()
        return Away(f"{self._connection.shown} does not answer: {why}")

    async def look(self) -> Found:
        """See `port.Subscription`."""
        return await self._connection.look()

    async def close(self) -> None:
        """See `port.Subscription`."""
        self._pull = None
        await self._connection.close()
