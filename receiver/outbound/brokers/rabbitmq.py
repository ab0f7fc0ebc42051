"""RabbitMQ: a queue, or an exchange with a routing key. Messages are persistent, and confirmed one by one.

RabbitMQ knows no ids by itself: `x-deduplication-header` is for the plugin that does. A message that no queue takes
comes back, and counts as refused.
"""

import asyncio
import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import aio_pika
from aio_pika.abc import (
    AbstractChannel,
    AbstractConnection,
    AbstractExchange,
    AbstractIncomingMessage,
    AbstractQueue,
)
from aio_pika.exceptions import AMQPError, ChannelClosed, DeliveryError
from pamqp.exceptions import PAMQPException
from yarl import URL

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers.port import (
    CONNECT_TIMEOUT,
    PUBLISH_TIMEOUT,
    Away,
    Found,
    LoopThread,
    Message,
    Outcome,
    Refused,
    Taken,
    TooLarge,
)

DEDUPLICATION: Final = "x-deduplication-header"
PREFETCH: Final = 200
_CLOUD_EVENTS: Final = "cloudEvents_"
"""The prefix of the attributes of CloudEvents among the headers of AMQP, in the place of `ce-`."""
_SHORT: Final = 255
"""Bytes that a short string of AMQP may have."""
_NOT_ENCODED = (ValueError, TypeError, struct.error, PAMQPException)
_FIRST, _NEXT = 1.0, 0.01
"""Seconds that a message is waited for, and the next one."""
_LOST = (OSError, AMQPError, asyncio.TimeoutError, asyncio.CancelledError, RuntimeError)


class _Connection:
    """A connection with one channel, made with the first call, and anew after it broke."""

    def __init__(self, address: Address) -> None:
        self.shown = address.shown
        self.queue = address.options.get("queue", "")
        self.exchange = address.options.get("exchange", "")
        self.routing_key = address.options.get("routing_key")
        self._url = URL(address.server)
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None

    async def channel(self) -> AbstractChannel:
        """Return an open channel. Raises `Away`."""
        if self._channel is None or self._channel.is_closed:
            await self.close()
            try:
                self._connection = await aio_pika.connect(self._url, timeout=CONNECT_TIMEOUT)
                self._channel = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
            except (OSError, AMQPError, TimeoutError) as error:
                raise Away(f"{self.shown} does not answer: {type(error).__name__}") from None
        return self._channel

    async def target(self) -> AbstractExchange:
        """Return the exchange, a queue's own being the default one. Raises `Refused` where there is none."""
        channel = await self.channel()
        if not self.exchange:
            return channel.default_exchange
        try:
            return await channel.get_exchange(self.exchange, ensure=True)
        except ChannelClosed as error:
            raise Refused(f"exchange {self.exchange} can't be used: {type(error).__name__}") from None

    async def look(self) -> Found:
        """Ask for the queue or the exchange, without making it."""
        await self.close()
        channel = await self.channel()
        try:
            if self.exchange:
                await channel.get_exchange(self.exchange, ensure=True)
                return Found(f"exchange {self.exchange} is there")
            found = await channel.declare_queue(self.queue, passive=True)
        except ChannelClosed as error:
            name = self.exchange or self.queue
            raise Refused(
                f"{name} can't be used ({type(error).__name__}); make it, or name another"
            ) from None
        except _LOST as error:
            raise Away(f"{self.shown} does not answer: {type(error).__name__}") from None
        return Found(f"queue {self.queue} is there, with {found.declaration_result.message_count} messages")

    async def close(self) -> None:
        """Close the connection, whatever its state."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(Exception):  # it is thrown away
                await asyncio.wait_for(connection.close(), 1)


class RabbitPublisher:
    """Publishes to one queue or exchange; all messages of a call are under way at once."""

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
            exchange = await connection.target()
        except (Away, Refused) as error:
            return [error] * len(messages)
        except _LOST as error:
            await connection.close()
            return [self._outcome(error)] * len(messages)
        answers = await asyncio.gather(
            *(self._published(exchange, each) for each in messages), return_exceptions=True
        )
        outcomes = [self._outcome(each) if isinstance(each, BaseException) else None for each in answers]
        if any(isinstance(each, Away) for each in outcomes):
            await connection.close()
        return outcomes

    async def _published(self, exchange: AbstractExchange, message: Message) -> None:
        key = self._routing_key(message)
        if len(key.encode()) > _SHORT:
            raise TooLarge(
                f"its routing key of {len(key.encode())} bytes is longer than the {_SHORT} of AMQP"
            )
        await exchange.publish(_made(message), key, mandatory=True, timeout=PUBLISH_TIMEOUT)

    def _routing_key(self, message: Message) -> str:
        connection = self._connection
        if not connection.exchange:
            return connection.queue
        return message.type if connection.routing_key is None else connection.routing_key

    def _outcome(self, error: BaseException) -> Outcome:
        if isinstance(error, Refused):
            return error
        if isinstance(error, _NOT_ENCODED):
            return Refused(f"a message can't be written as AMQP: {type(error).__name__}")
        if isinstance(error, DeliveryError):
            return Refused(f"{self._connection.shown}: no queue takes a message; bind one, or name another")
        return Away(f"{self._connection.shown} has not confirmed a message: {type(error).__name__}")

    def look(self) -> Found:
        """See `port.Publisher`."""
        return self._thread.run(self._connection.look(), CONNECT_TIMEOUT + PUBLISH_TIMEOUT)

    def close(self) -> None:
        """See `port.Publisher`."""
        with suppress(Away):
            self._thread.run(self._connection.close(), 2)
        self._thread.close()


def _made(message: Message) -> aio_pika.Message:
    headers: dict[str, Any] = {
        _CLOUD_EVENTS + name[3:] if name.startswith("ce-") else name: value
        for name, value in message.headers.items()
        if value and name != "content-type"
    }
    return aio_pika.Message(
        message.body,
        headers={**headers, DEDUPLICATION: message.id},
        message_id=message.id,
        content_type=_short(message.headers["content-type"]),
        type=_short(message.type),
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )


def _short(text: str) -> str:
    return text.encode()[:_SHORT].decode(errors="ignore")


class RabbitSubscription:
    """Consumes one queue; what is not acknowledged when the connection ends is delivered again."""

    def __init__(self, address: Address) -> None:
        self._connection = _Connection(address)
        self._waiting: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        self._consumed: AbstractQueue | None = None

    async def fetch(self, most: int) -> Sequence[Taken]:
        """See `port.Subscription`."""
        await self._consuming()
        taken: list[Taken] = []
        while len(taken) < most:
            try:
                seconds = _NEXT if taken else _FIRST
                taken.append(_taken(await asyncio.wait_for(self._waiting.get(), seconds)))
            except TimeoutError:
                break
        return taken

    async def _consuming(self) -> None:
        channel = await self._connection.channel()
        if self._consumed is not None and self._consumed.channel is channel:
            return
        self._waiting = asyncio.Queue()
        try:
            await channel.set_qos(prefetch_count=PREFETCH)
            self._consumed = await channel.get_queue(self._connection.queue, ensure=True)
            await self._consumed.consume(self._waiting.put)
        except ChannelClosed as error:
            raise Refused(f"queue {self._connection.queue} can't be used: {type(error).__name__}") from None
        except _LOST as error:
            raise await self._away(error) from None

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """See `port.Subscription`."""
        await self._settle([each.handle.ack() for each in taken])

    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """See `port.Subscription`; the broker has no delays, so it is waited here."""
        await asyncio.sleep(min(delay.total_seconds(), 5))
        await self._settle([each.handle.nack(requeue=True) for each in taken])

    async def _settle(self, calls: Sequence[Any]) -> None:
        for each in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(each, BaseException):
                raise await self._away(each)

    async def _away(self, error: BaseException) -> Away:
        await self.close()
        return Away(f"{self._connection.shown} does not answer: {type(error).__name__}")

    async def look(self) -> Found:
        """See `port.Subscription`."""
        return await self._connection.look()

    async def close(self) -> None:
        """See `port.Subscription`."""
        self._consumed = None
        await self._connection.close()


def _taken(message: AbstractIncomingMessage) -> Taken:
    headers = {
        re.sub(f"^{_CLOUD_EVENTS}", "ce-", name): value.decode("utf-8", "replace")
        if isinstance(value, bytes)
        else str(value)
        for name, value in message.headers.items()
    }
    if message.content_type:
        headers["content-type"] = message.content_type
    count = message.headers.get("x-delivery-count")
    deliveries = count + 1 if isinstance(count, int) else 1 + bool(message.redelivered)
    return Taken(message.message_id or "", headers, message.body, deliveries, message)
