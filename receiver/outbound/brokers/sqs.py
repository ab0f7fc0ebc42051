"""Amazon SQS: a queue, or a FIFO queue that knows ids for 5 minutes and keeps the order within a group.

Ten messages go into a call. A body that is not text as SQS takes it goes as base64, which an attribute says. The
queue's own maximum is the limit of a message; credentials and region are those that boto3 finds.
"""

import asyncio
import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers.port import (
    CONNECT_TIMEOUT,
    PUBLISH_TIMEOUT,
    Away,
    Found,
    Message,
    Outcome,
    Refused,
    Taken,
    TooLarge,
    encoded,
)

MOST: Final = 10
REMEMBERS: Final = timedelta(minutes=5)
ENCODING: Final = "hookonce-encoding"
_LARGEST: Final = 262_144
_LIMIT: Final = "MaximumMessageSize"
_ATTRIBUTES: Final = [_LIMIT, "FifoQueue"]
_TEXT: Final = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
_GROUP: Final = re.compile(r"[!-~]{1,128}")
_REGION: Final = re.compile(r"\.?sqs[.-]([a-z]{2}(?:-[a-z]+)+-\d)\.")
_BUSY: Final = re.compile(r"Throttl|Unavailable|InternalFailure|InternalError|OverLimit")
_MINIMAL: Final = "-"
"""The body of a message whose event has an empty one: SQS takes no empty message."""


class _Queue:
    """One queue, asked for its limits with the first call."""

    def __init__(self, address: Address) -> None:
        self._url = address.url
        self.shown = address.shown
        self._client: Any = None
        self._attributes: Mapping[str, str] | None = None

    def call(self, name: str, **given: object) -> Any:  # noqa: ANN401  of a library without types
        """Make one call. Raises `Away` and `Refused`."""
        try:
            if self._client is None:
                self._client = self._made()
            return getattr(self._client, name)(QueueUrl=self._url, **given)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if _BUSY.search(code):
                raise Away(f"{self.shown} is busy: {code}") from None
            raise Refused(f"{self.shown} refuses {name}: {code.rpartition('.')[2]}") from None
        except (BotoCoreError, OSError) as error:
            raise Away(f"{self.shown} does not answer: {type(error).__name__}") from None

    def _made(self) -> Any:  # noqa: ANN401
        parts = urlsplit(self._url)
        found = _REGION.search(parts.netloc)
        config = Config(
            connect_timeout=CONNECT_TIMEOUT, read_timeout=PUBLISH_TIMEOUT, retries={"total_max_attempts": 1}
        )
        return boto3.session.Session().client(
            "sqs",
            endpoint_url=f"{parts.scheme}://{parts.netloc}",
            region_name=found[1] if found else None,
            config=config,
        )

    def attributes(self) -> Mapping[str, str]:
        """Return the queue's limits. Raises `Away` and `Refused`."""
        if self._attributes is None:
            found = self.call("get_queue_attributes", AttributeNames=["All"])["Attributes"]
            self._attributes = {name: found[name] for name in _ATTRIBUTES if name in found}
        return self._attributes

    def look(self) -> Found:
        """Ask for the queue's attributes, and whether it knows ids."""
        self._attributes = None
        is_fifo = self.attributes().get("FifoQueue") == "true"
        return Found(
            "the queue is there" + (", a FIFO queue" if is_fifo else ""), REMEMBERS if is_fifo else None
        )


class SqsPublisher:
    """Sends to one queue, ten messages to a call."""

    def __init__(self, address: Address) -> None:
        self._queue = _Queue(address)

    def publish(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """See `port.Publisher`."""
        outcomes: dict[str, Outcome] = {}
        try:
            limits = self._queue.attributes()
            most = int(limits.get(_LIMIT, _LARGEST))
            for entries in _calls(messages, most, outcomes, is_fifo=limits.get("FifoQueue") == "true"):
                outcomes |= self._sent(entries)
        except (Away, Refused) as error:
            outcomes |= {each.id: error for each in messages if each.id not in outcomes}
        return [outcomes[each.id] for each in messages]

    def _sent(self, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
        numbered = [{**entry, "Id": str(n)} for n, entry in enumerate(entries.values())]
        names = dict(enumerate(entries))
        try:
            answer = self._queue.call("send_message_batch", Entries=numbered)
        except (Away, Refused) as error:
            return dict.fromkeys(entries, error)
        outcomes: dict[str, Outcome] = {names[int(each["Id"])]: None for each in answer.get("Successful", ())}
        for each in answer.get("Failed", ()):
            kind = Refused if each.get("SenderFault") else Away
            outcomes[names[int(each["Id"])]] = kind(f"{self._queue.shown} refuses a message: {each['Code']}")
        return {name: outcomes.get(name, Away("it was not answered for")) for name in entries}

    def look(self) -> Found:
        """See `port.Publisher`."""
        return self._queue.look()

    def close(self) -> None:
        """Do nothing: connections are boto3's."""


def _calls(
    messages: Sequence[Message], most: int, outcomes: dict[str, Outcome], *, is_fifo: bool
) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield the entries of each call, by id; what is too large gets its outcome instead."""
    entries: dict[str, dict[str, Any]] = {}
    size = 0
    for each in messages:
        entry, bytes_of_it = _entry(each, is_fifo=is_fifo)
        if bytes_of_it > most:
            outcomes[each.id] = TooLarge(
                f"{bytes_of_it:,} bytes are more than the {most:,} that the queue takes"
            )
            continue
        if entries and (len(entries) == MOST or size + bytes_of_it > max(most, _LARGEST)):
            yield entries
            entries, size = {}, 0
        entries[each.id] = entry
        size += bytes_of_it
    if entries:
        yield entries


def _entry(message: Message, *, is_fifo: bool) -> tuple[dict[str, Any], int]:
    """Return an entry of a call, and how many bytes SQS counts for it."""
    headers = encoded(message.headers)
    try:
        body = message.body.decode()
        is_text = _TEXT.fullmatch(body) is not None
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        body = base64.b64encode(message.body).decode()
        headers[ENCODING] = "base64"
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in headers.items()}
    entry: dict[str, Any] = {"MessageBody": body or _MINIMAL, "MessageAttributes": attributes}
    if is_fifo:
        group = message.group
        fits = _GROUP.fullmatch(group)
        entry["MessageGroupId"] = (
            group if fits else hashlib.sha256(group.encode("utf-8", "replace")).hexdigest()
        )
        entry["MessageDeduplicationId"] = message.id
    return entry, len(body.encode()) + sum(len(n) + len("String") + len(v) for n, v in headers.items())


class SqsSubscription:
    """Takes from one queue, ten messages to a call, each in a thread."""

    def __init__(self, address: Address) -> None:
        self._queue = _Queue(address)

    async def fetch(self, most: int) -> Sequence[Taken]:
        """See `port.Subscription`; calls follow one another as long as they are full."""
        taken: list[Taken] = []
        while len(taken) < most:
            answer = await self._call(
                "receive_message",
                MaxNumberOfMessages=min(MOST, most - len(taken)),
                MessageAttributeNames=["All"],
                AttributeNames=["ApproximateReceiveCount"],
                WaitTimeSeconds=0 if taken else 1,
            )
            found = answer.get("Messages", ())
            taken += map(_taken, found)
            if len(found) < MOST:
                break
        return taken

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        """See `port.Subscription`."""
        await self._settle("delete_message_batch", taken)

    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """See `port.Subscription`."""
        await self._settle(
            "change_message_visibility_batch", taken, VisibilityTimeout=int(delay.total_seconds())
        )

    async def _settle(self, name: str, taken: Sequence[Taken], **more: object) -> None:
        for at in range(0, len(taken), MOST):
            entries = [
                {"Id": str(n), "ReceiptHandle": each.handle, **more}
                for n, each in enumerate(taken[at : at + MOST])
            ]
            await self._call(name, Entries=entries)

    async def _call(self, name: str, **given: object) -> Any:  # noqa: ANN401
        return await asyncio.to_thread(self._queue.call, name, **given)

    async def look(self) -> Found:
        """See `port.Subscription`."""
        return await asyncio.to_thread(self._queue.look)

    async def close(self) -> None:
        """Do nothing: connections are boto3's."""


def _taken(message: Mapping[str, Any]) -> Taken:
    told = message.get("MessageAttributes", {})
    headers = {name: str(each["StringValue"]) for name, each in told.items() if "StringValue" in each}
    body = str(message["Body"])
    raw = body.encode()
    if headers.pop(ENCODING, "") == "base64":
        try:
            raw = b"" if body == _MINIMAL else base64.b64decode(body, validate=True)
        except binascii.Error:
            raw = body.encode()
    count = int(message.get("Attributes", {}).get("ApproximateReceiveCount", 1))
    return Taken(str(message["MessageId"]), headers, raw, count, message["ReceiptHandle"])
