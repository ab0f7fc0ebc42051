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
from botocore.exceptions import ClientError

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

MOST: Final = 10
REMEMBERS: Final = timedelta(minutes=5)
ENCODING: Final = "hookonce-encoding"
_LARGEST: Final = 262_144
_LIMIT: Final = "MaximumMessageSize"
_TEXT: Final = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
_GROUP: Final = re.compile(r"[!-~]{1,128}")
_REGION: Final = re.compile(r"\.?sqs[.-]([a-z]{2}(?:-[a-z]+)+-\d)\.")
_BUSY: Final = re.compile(r"Throttl|Unavailable|InternalFailure|InternalError|OverLimit")
_MINIMAL: Final = "-"
"""The body of a message whose event has an empty one: SQS takes no empty message."""


class Sqs(Broker):
    """Sends to one queue and takes from it, each call in a thread; the queue's limits are asked for once."""

    def __init__(self, address: Address) -> None:
        """Keep the address."""
        super().__init__(address)
        self._client: Any = None
        self._limits: Mapping[str, str] = {}

    async def _call(self, name: str, **given: object) -> Any:  # noqa: ANN401  of a library without types
        return await asyncio.to_thread(self._called, name, given)

    def _called(self, name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401
        if self._client is None:
            parts = urlsplit(self.address.url)
            region = _REGION.search(parts.netloc)
            self._client = boto3.session.Session().client(
                "sqs",
                endpoint_url=f"{parts.scheme}://{parts.netloc}",
                region_name=region and region[1],
                config=Config(
                    connect_timeout=CONNECT_TIMEOUT,
                    read_timeout=PUBLISH_TIMEOUT,
                    retries={"total_max_attempts": 1},
                ),
            )
        return getattr(self._client, name)(QueueUrl=self.address.url, **given)

    async def _asked(self) -> Mapping[str, str]:
        answer = await self._call("get_queue_attributes", AttributeNames=["All"])
        self._limits = answer["Attributes"]
        return self._limits

    def failure(self, error: BaseException) -> NotConfirmed:
        """See `port.Broker`."""
        if not isinstance(error, ClientError):
            return super().failure(error)
        code = str(error.response.get("Error", {}).get("Code", ""))
        kind = Away if _BUSY.search(code) else Refused
        return kind(f"{self.address.shown} refuses a call: {code.rpartition('.')[2]}")

    async def look(self) -> Found:
        """Ask for the queue's attributes, and whether it knows ids."""
        async with self.reached():
            if (await self._asked()).get("FifoQueue") == "true":
                return Found("the queue is there, a FIFO queue", REMEMBERS)
            return Found("the queue is there")

    async def send(self, messages: Sequence[Message], outcomes: dict[str, Outcome]) -> None:
        """See `port.Broker`; ten messages go into a call, and calls follow one another."""
        limits = self._limits or await self._asked()
        most, is_fifo = int(limits.get(_LIMIT, _LARGEST)), limits.get("FifoQueue") == "true"
        for entries in _calls(messages, most, outcomes, is_fifo=is_fifo):
            names = list(entries)
            numbered = [{**entry, "Id": str(n)} for n, entry in enumerate(entries.values())]
            answer = await self._call("send_message_batch", Entries=numbered)
            outcomes |= dict.fromkeys(names, Away("it was not answered for"))
            outcomes |= {names[int(each["Id"])]: None for each in answer.get("Successful", ())}
            outcomes |= {names[int(each["Id"])]: self._failed(each) for each in answer.get("Failed", ())}

    async def fetch(self, most: int) -> Sequence[Taken]:
        """See `port.Broker`; calls follow one another as long as they are full."""
        taken: list[Taken] = []
        async with self.reached():
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
        """See `port.Broker`."""
        await self._settle("delete_message_batch", taken)

    async def give_back(self, taken: Sequence[Taken], delay: timedelta) -> None:
        """See `port.Broker`."""
        seconds = int(delay.total_seconds())
        await self._settle("change_message_visibility_batch", taken, VisibilityTimeout=seconds)

    async def _settle(self, name: str, taken: Sequence[Taken], **more: object) -> None:
        entries = [{"Id": str(n), "ReceiptHandle": each.handle, **more} for n, each in enumerate(taken)]
        calls = range(0, len(taken), MOST)
        await self.settle(self._settled(name, entries[at : at + MOST]) for at in calls)

    async def _settled(self, name: str, entries: Sequence[Mapping[str, object]]) -> None:
        for each in (await self._call(name, Entries=entries)).get("Failed", ()):
            raise self._failed(each)

    def _failed(self, entry: Mapping[str, Any]) -> NotConfirmed:
        kind = Refused if entry.get("SenderFault") else Away
        return kind(f"{self.address.shown} refuses a message: {entry['Code']}")


def _calls(
    messages: Sequence[Message], most: int, outcomes: dict[str, Outcome], *, is_fifo: bool
) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield the entries of each call, by id; what is too large gets its outcome instead."""
    entries: dict[str, dict[str, Any]] = {}
    whole = 0
    for each in messages:
        entry, size = _entry(each, is_fifo=is_fifo)
        if size > most:
            outcomes[each.id] = Never(f"{size:,} bytes are more than the {most:,} that the queue takes")
            continue
        if entries and (len(entries) == MOST or whole + size > max(most, _LARGEST)):
            yield entries
            entries, whole = {}, 0
        entries[each.id] = entry
        whole += size
    if entries:
        yield entries


def _entry(message: Message, *, is_fifo: bool) -> tuple[dict[str, Any], int]:
    """Return an entry of a call, and how many bytes SQS counts for it."""
    headers = encoded(message.headers)
    body = message.body.decode("utf-8", "replace")
    if body.encode() != message.body or not _TEXT.fullmatch(body):
        body = base64.b64encode(message.body).decode() or _MINIMAL
        headers[ENCODING] = "base64"
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in headers.items()}
    entry: dict[str, Any] = {"MessageBody": body, "MessageAttributes": attributes}
    if is_fifo:
        group = message.group
        fits = _GROUP.fullmatch(group)
        hashed = hashlib.sha256(group.encode("utf-8", "replace")).hexdigest()
        entry |= {"MessageGroupId": group if fits else hashed, "MessageDeduplicationId": message.id}
    return entry, len(body.encode()) + sum(len(n) + len("String") + len(v) for n, v in headers.items())


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
