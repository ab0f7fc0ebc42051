"""NATS JetStream: a subject that a stream covers. The server knows ids for the stream's duplicate window, 2 minutes.

A connection that breaks is made anew with the next call: what was not confirmed by then may have arrived, and comes
again under its id.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers.port import (
    CONNECT_TIMEOUT,
    PUBLISH_TIMEOUT,
    Away,
    Broker,
    Found,
    Message,
    Never,
    NotConfirmed,
    Outcome,
    Refused,
    Taken,
    encoded,
)

ID: Final = "Nats-Msg-Id"
ACK_WAIT: Final = timedelta(seconds=30)
"""How long a message that was taken is not delivered to others."""
_FETCH: Final = 1.0
_NO_CONSUMER: Final = 10014
"""The server's code of errors for a consumer that is not there."""
_FRAME: Final = 512
"""Bytes that the frame of a message and its headers may take besides their texts."""


class Nats(Broker):
    """Publishes to one subject, and pulls as the durable consumer that the address names, or of the source's name."""

    def __init__(self, address: Address, source: str) -> None:
        """Keep the names."""
        super().__init__(address)
        self._durable = address.options.get("durable", f"hookonce-{source}")
        self._client: Client | None = None
        self._pull: JetStreamContext.PullSubscription | None = None

    async def _connected(self) -> Client:
        async with self.connecting:
            if self._client is None or not self._client.is_connected:
                await self.close()

                async def closed() -> None:
                    for each in self.under_way:
                        each.cancel()

                async def failed(_: Exception) -> None:
                    """Errors are raised where they happen, too."""

                self._client = await nats.connect(
                    self.address.server,
                    name="hookonce",
                    connect_timeout=int(CONNECT_TIMEOUT),
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    disconnected_cb=closed,
                    error_cb=failed,
                )
        return self._client

    async def send(self, messages: Sequence[Message], outcomes: dict[str, Outcome]) -> None:
        """See `port.Broker`; all messages are under way at once."""
        client = await self._connected()
        sent = await self.outcomes_of(self._sent(client, each) for each in messages)
        outcomes.update(zip([each.id for each in messages], sent, strict=True))

    async def _sent(self, client: Client, message: Message) -> None:
        headers = {**encoded(message.headers), ID: message.id}
        size = len(message.body) + sum(len(name) + len(value) + 4 for name, value in headers.items())
        if size + _FRAME > client.max_payload:
            raise Never(f"{size:,} bytes are more than the {client.max_payload:,} that the server takes")
        await client.jetstream().publish(
            self.address.path, message.body, timeout=PUBLISH_TIMEOUT, headers=headers
        )

    def failure(self, error: BaseException) -> NotConfirmed:
        """See `port.Broker`."""
        if isinstance(error, NotFoundError) and error.err_code == _NO_CONSUMER:
            return Away(f"{self.address.shown} has no consumer {self._durable} any more; it is made again")
        if isinstance(error, NoStreamResponseError | NotFoundError):
            return Refused(f"no stream covers {self.address.path}; make one, or name another subject")
        if isinstance(error, APIError):
            return Refused(f"{self.address.shown} refuses: {error.description}")
        return super().failure(error)

    async def look(self) -> Found:
        """Find the stream that covers the subject."""
        async with self.reached():
            js = (await self._connected()).jetstream()
            stream = await js.find_stream_name_by_subject(self.address.path)
            known = (await js.stream_info(stream)).config.duplicate_window or 0
            return Found(f"stream {stream} covers {self.address.path}", timedelta(seconds=known))

    async def fetch(self, most: int) -> Sequence[Taken]:
        """See `port.Broker`."""
        async with self.reached():
            client = await self._connected()
            if self._pull is None:
                config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, ack_wait=ACK_WAIT.total_seconds())
                js = client.jetstream()
                self._pull = await js.pull_subscribe(self.address.path, self._durable, config=config)
            try:
                return [_taken(each) for each in await self._pull.fetch(most, timeout=_FETCH)]
            except TimeoutError:
                await self._pull.consumer_info()  # the server does not answer for one that was deleted
                return []

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """See `port.Broker`."""
        await self.settle(each.handle.ack() for each in taken)

    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """See `port.Broker`."""
        await self.settle(each.handle.nak(delay.total_seconds()) for each in taken)

    async def close(self) -> None:
        """See `port.Broker`."""
        client, self._client, self._pull = self._client, None, None
        if client is not None:
            with suppress(Exception):  # it is thrown away
                await asyncio.wait_for(client.close(), 1)


def _taken(message: Msg) -> Taken:
    known = message.metadata
    own = f"{known.stream}:{known.sequence.stream}"
    return Taken(own, message.headers or {}, message.data, known.num_delivered or 1, message)
