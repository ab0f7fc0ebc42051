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
)
from aio_pika.exceptions import ChannelClosed, DeliveryError
from pamqp.exceptions import PAMQPException
from yarl import URL

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers.port import (
    CONNECT_TIMEOUT,
    PUBLISH_TIMEOUT,
    Broker,
    Found,
    Message,
    Never,
    NotConfirmed,
    Outcome,
    Refused,
    Taken,
)

DEDUPLICATION: Final = "x-deduplication-header"
PREFETCH: Final = 200
_CLOUD_EVENTS: Final = "cloudEvents_"
"""The prefix of CloudEvents' attributes among the headers of AMQP, in the place of `ce-`."""
_SHORT: Final = 255
"""Bytes that a short string of AMQP may have."""
_NOT_ENCODED: Final = (ValueError, TypeError, struct.error, PAMQPException)
_FIRST, _NEXT = 1.0, 0.01
"""Seconds that a message is waited for, and the next one."""


class Rabbit(Broker):
    """Publishes to one queue or exchange, and consumes one queue, over a connection with one channel."""

    def __init__(self, address: Address) -> None:
        """Keep the names."""
        super().__init__(address)
        self._queue = address.options.get("queue", "")
        self._exchange = address.options.get("exchange", "")
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._consumer: str | None = None
        self._waiting: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()

    async def _opened(self) -> AbstractChannel:
        async with self.connecting:
            if self._channel is None or self._channel.is_closed:
                await self.close()
                self._connection = await aio_pika.connect(URL(self.address.server), timeout=CONNECT_TIMEOUT)
                self._channel = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
                self._waiting = asyncio.Queue()
        return self._channel

    async def _target(self) -> AbstractExchange:
        """Return the exchange, a queue's own being the default one."""
        channel = await self._opened()
        if self._exchange:
            return await channel.get_exchange(self._exchange, ensure=True)
        return channel.default_exchange

    async def send(self, messages: Sequence[Message], outcomes: dict[str, Outcome]) -> None:
        """See `port.Broker`; all messages are under way at once."""
        exchange = await self._target()
        sent = await self.outcomes_of(self._sent(exchange, each) for each in messages)
        outcomes.update(zip([each.id for each in messages], sent, strict=True))

    async def _sent(self, exchange: AbstractExchange, message: Message) -> None:
        key = self._queue or self.address.options.get("routing_key", message.type)
        try:
            if (size := len(key.encode())) > _SHORT:
                raise Never(f"its routing key of {size} bytes is longer than the {_SHORT} of AMQP")
            await exchange.publish(_made(message), key, mandatory=True, timeout=PUBLISH_TIMEOUT)
        except _NOT_ENCODED as error:
            raise Refused(f"a message can't be written as AMQP: {type(error).__name__}") from None

    def failure(self, error: BaseException) -> NotConfirmed:
        """See `port.Broker`."""
        if isinstance(error, DeliveryError):
            return Refused(f"{self.address.shown}: no queue takes a message; bind one, or name another")
        if isinstance(error, ChannelClosed):
            name = self._exchange or self._queue
            return Refused(f"{name} can't be used ({type(error).__name__}); make it, or name another")
        return super().failure(error)

    async def look(self) -> Found:
        """Ask for the queue or the exchange, without making it."""
        async with self.reached():
            await self._target()
            if self._exchange:
                return Found(f"exchange {self._exchange} is there")
            found = await (await self._opened()).declare_queue(self._queue, passive=True)
            count = found.declaration_result.message_count
            return Found(f"queue {self._queue} is there, with {count} messages")

    async def fetch(self, most: int) -> Sequence[Taken]:
        """See `port.Broker`."""
        async with self.reached():
            channel = await self._opened()
            underlay: Any = await channel.get_underlay_channel()
            if self._consumer not in underlay.consumers:  # the server cancels it where the queue is deleted
                await channel.set_qos(prefetch_count=PREFETCH)
                queue = await channel.get_queue(self._queue, ensure=True)
                self._consumer = await queue.consume(self._waiting.put)
            taken: list[Taken] = []
            with suppress(TimeoutError):
                while len(taken) < most:
                    seconds = _NEXT if taken else _FIRST
                    taken.append(_taken(await asyncio.wait_for(self._waiting.get(), seconds)))
            if not taken:  # a queue that was deleted is silent, and so is a server that is gone
                await channel.declare_queue(self._queue, passive=True)
            return taken

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """See `port.Broker`."""
        await self.settle(each.handle.ack() for each in taken)

    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """See `port.Broker`; RabbitMQ has no delays, so it is waited here."""
        await asyncio.sleep(min(delay.total_seconds(), 5))
        await self.settle(each.handle.nack(requeue=True) for each in taken)

    async def close(self) -> None:
        """See `port.Broker`."""
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(Exception):  # it is thrown away
                await asyncio.wait_for(connection.close(), 1)


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
