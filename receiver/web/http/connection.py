"""One client's connection: a head, its answer, and again; in a task of the event loop, or without waking it (`_take`).

What has an endpoint is answered on the loop; all else is for the WSGI application behind it (`application`).

Requests that a client sends ahead wait until the one before is answered, and until the kernel has taken that answer: so
a client that does not read is soon not read from, and answers have the order of the requests.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import CHARGE_CLIENT, OnLoop
from hookonce.receiver.web.http import answer as answers
from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.answer import Answer
from hookonce.receiver.web.http.body_stream import BodyStream
from hookonce.receiver.web.http.clients import Client
from hookonce.receiver.web.http.head import BadHead, Head, HeadReader, Shape, shape_of
from hookonce.receiver.web.http.request import Environ, IncomingRequest
from hookonce.receiver.web.http.transport import Gone, TooLate, Transport
from hookonce.receiver.web.http.turns import Account
from hookonce.receiver.web.mounted import part_of
from hookonce.receiver.web.request import Request
from hookonce.receiver.web.response import Response
from hookonce.receiver.web.slow_bodies import BodyTime

House = Any
"""What the connections of a process share: `receiver.web.worker.LoopWorker`, which imports this module."""

log = limited(__name__)

_NEVER = float("inf")
_HANDSHAKE = limits.HANDSHAKE_TIMEOUT.total_seconds()
_HEAD = limits.HEAD_TIMEOUT.total_seconds()
_ANSWER = limits.ANSWER_TIMEOUT.total_seconds()
_LINGER = limits.LINGER_TIMEOUT.total_seconds()
_GRACE = limits.GRACE.total_seconds()


Begin = Callable[[Request, bytes, OnLoop, Callable[[Response], None]], bool]
"""What an endpoint may have as `begin`: it answers a request that came whole, or touches nothing and returns False."""


class Connection:
    """A client, from its first byte to the last."""

    def __init__(self, house: House, transport: Transport, common: Environ, peer: tuple[str, str]) -> None:
        self._house = house
        self._transport = transport
        self._common = common
        self._peer = peer
        self._part = part_of(common)
        self._is_proxy = house.clients.is_proxy(peer[0])
        self._account = Account(house.clients.at(peer[0]), house.clients)
        self._body_time = BodyTime(0.0)
        self._shape: Shape | None = None
        self._flies = self._ends = False
        self._is_new = True
        self._until = monotonic() + _HEAD
        self._since = _NEVER
        self._taken = 0
        self._head_size = 0
        self._is_answering = False

    @property
    def client(self) -> Client:
        """The client of the connection, as far as a proxy told."""
        return self._account.client

    @property
    def is_genuine(self) -> bool:
        """Whether its latest request brought an event that was verified."""
        return self._account.is_genuine

    async def serve(self) -> None:
        """Answer requests until the client or we have had enough."""
        crowd = self._house.crowd
        crowd.enter(self)
        lingers = False
        try:
            await self._make_ready()
            lingers = await self._converse()
        except BadHead as error:
            log.info("rejected", extra={"source": None, "reason": "bad_header", "error": str(error)})
            lingers = await self._say_last(answers.refusal(400, "bad_header"))
        except (Gone, TooLate):
            pass
        except Exception as error:
            log.exception("a request failed outside the application: %s", type(error).__name__)
            lingers = await self._say_last(answers.refusal(500, "internal_error"))
        finally:
            self._stop_answering()
            self._hold(0)
            try:
                if lingers:
                    await self._linger()
            finally:
                crowd.leave(self)
                self._transport.hang_up(self._house.graves)

    def is_late(self, now: float) -> bool:
        """Whether its time is over, or its bytes come too slowly."""
        if now > self._until:
            return True
        waited = now - self._since
        return waited > _GRACE and self._taken < waited * limits.MINIMUM_RATE

    def expire(self) -> None:
        """End, at once if it waits for the client."""
        self._transport.expire()

    def evict(self) -> None:
        """The same, for it has to make room."""
        self._transport.evict()

    def wake(self) -> None:
        """Look whether it should end."""
        self._transport.wake()

    async def next_bytes(self, size: int) -> bytes:
        """Wait for bytes of a body; b"" at the end of everything. Raises `Gone` and `TooLate`."""
        if self._since == _NEVER:
            self._since, self._taken = monotonic(), 0
            self._body_time = BodyTime(self._since)
        self._until = self._body_time.until
        data = await self._wait_for(size)
        self._taken += len(data)
        self._body_time.extend(len(data), monotonic())
        self._account.charge(len(data) * limits.RECEIVED_COST)
        return data

    def charge(self, seconds: float) -> None:
        """Charge the client what a thread has worked for it."""
        self._account.charge(seconds)

    async def next_slice(self) -> None:
        """Let others go on, if it is time."""
        if self._account.is_over:
            await self._stand_in_line()

    async def is_taken_whole(self, size: int) -> None:
        """Time the client no longer; stand in line before a large body is looked at, which is done in one piece."""
        self._since, self._until = _NEVER, _NEVER
        if size > limits.LARGE_BODY:
            self._account.charge(size * limits.BYTE_COST)
            await self._stand_in_line()

    async def _make_ready(self) -> None:
        crowd = self._house.crowd
        self._until = monotonic() + _HANDSHAKE
        await self._transport.greet()
        self._house.clients.note(self.client)
        crowd.shakes_hands(self)
        await self._transport.handshake(self._house.turns, self.client)
        crowd.has_shaken_hands(self)

    async def _converse(self) -> bool:
        """Answer requests; whether the client may still be sending at the end."""
        rest = b""
        while True:
            read = await self._read_head(rest)
            if read is None:
                return False
            kept = await self._answer(*read)
            if kept is None:
                return True
            rest = kept
            if self._house.is_closing:
                return bool(rest)
            if rest or self._transport.has_more:
                await self._stand_in_line()

    async def _read_head(self, rest: bytes) -> tuple[Head, bytes] | None:
        """Wait for a request; None if there is none any more. Raises `BadHead`, `Gone` and `TooLate`."""
        reader = HeadReader(*self._house.head_limits)
        self._until = monotonic() + (_HEAD if self._is_new else self._house.keepalive)
        try:
            read = await self._await_head(reader, rest)
        finally:
            reader.release()
        self._hold(0)
        self._since, self._until, self._is_new = _NEVER, _NEVER, False
        return read

    async def _await_head(self, reader: HeadReader, rest: bytes) -> tuple[Head, bytes] | None:
        was_asked = False
        read = reader.receive(rest) if rest else None
        while read is None:
            while self._flies:
                await self._transport.rest()
            await self._transport.drained()
            if self._ends:
                return None
            if reader.buffered:
                self._note_head(reader)
            data = self._transport.receive(limits.HEAD_READ)
            if data is None:
                if self._house.is_closing and not reader.buffered and was_asked:
                    return None
                was_asked = self._house.is_closing
                self._transport.taker = self._take if self._shape and not reader.buffered else None
                await self._wait()
                self._transport.taker = None
                continue
            if not data:
                reader.close()
                return None
            was_asked = False
            read = reader.receive(data)
            if read is None and self._account.is_over:
                await self._stand_in_line()
        return read

    def _note_head(self, reader: HeadReader) -> None:
        if self._since == _NEVER:
            self._since = monotonic()
            self._until = self._until if self._is_new else self._since + _HEAD
        self._taken = reader.buffered
        self._hold(reader.buffered)

    def _hold(self, size: int) -> None:
        if size != self._head_size:
            self._house.crowd.holds(size - self._head_size)
            self._head_size = size

    def _take(self, data: bytes) -> bool:
        """Begin to answer what came, without the task; False, with nothing touched, for what the task is to read.

        Taken is one whole request, like the one before and after a delivery that was verified.
        """
        house, account = self._house, self._account
        read = self._shape.read(data) if self._shape is not None else None
        if read is None or house.is_closing or self._transport.is_expired:
            return False
        account.resume()
        head, body = read
        request = IncomingRequest(head, self._peer[0])
        if self._is_proxy:
            self._look_behind(request)
        begin: Begin | None = getattr(house.endpoint_at(self._part, request.path), "begin", None)
        if begin is None or not (account.is_small or len(house.crowd) <= limits.FEW):
            return False
        if not begin(request, body, house.waits, partial(self._land, request)):
            return False
        self._note()
        self._flies = self._is_answering = True
        house.turns.answering += 1
        self._until = _NEVER
        account.pause()
        return True

    def _land(self, request: IncomingRequest, said: Response) -> None:
        """Answer what was taken."""
        self._flies = False
        self._settle(request)
        if self._transport.is_expired:
            return
        self._ends = ("Connection", "close") in said.headers or not self._may_keep(request.head)
        try:
            self._transport.write(answers.written(said, request.head, keeps=not self._ends))
        except Exception as error:
            self._ends = True
            if not isinstance(error, Gone):
                log.exception("an answer could not be sent: %s", type(error).__name__)
        self._house.crowd.rests(self)
        self._until = monotonic() + self._house.keepalive
        self._transport.go_on(is_last=self._ends)

    def _note(self) -> None:
        """Note that a request came."""
        house = self._house
        house.count_request()
        house.crowd.works(self)
        house.clients.note(self.client)

    async def _answer(self, head: Head, rest: bytes) -> bytes | None:
        """Answer a request; give what came after it, None if it was the last."""
        house = self._house
        request = IncomingRequest(head, self._peer[0])
        stream = request.stream = BodyStream(self, head, rest, self._invite)
        if self._is_proxy:
            self._look_behind(request)
        self._note()
        if not self._account.is_small:
            await self._stand_in_line()
        else:
            self._is_answering = True
            house.turns.answering += 1
        answer, began = Answer(), time.time()
        keeps = await self._answer_one(request, answer)
        if house.is_logged:
            house.note_access(head, answer, request.environ(self._common, self._peer), began)
        self._settle(request)
        if not keeps:
            return None
        self._shape = shape_of(head) if request.is_genuine and not house.is_logged else None
        house.crowd.rests(self)
        return stream.rest

    async def _answer_one(self, request: IncomingRequest, answer: Answer) -> bool:
        """Have a request answered, and send that; whether the connection is kept."""
        house = self._house
        try:
            endpoint = house.endpoint_at(self._part, request.path)
            if endpoint is None:
                environ = request.environ(self._common, self._peer)
                keeps: bool = await house.application.answer(request, answer, environ, self)
                return keeps
            CHARGE_CLIENT.set(self.charge)
            said = await endpoint.answer(request, house.waits)
            if house.is_logged:
                answer.begin(said.line, said.all_headers(len(said.body)))
            return await self._send_said(request, answer, said)
        except (Gone, TooLate):
            raise
        except Exception as error:
            log.exception("a request failed: %s", type(error).__name__)
            if answer.is_sent:
                raise Gone from None
            await self.send(answers.refusal(500, "internal_error"))
            answer.status = "500"
            return False

    async def _send_said(self, request: IncomingRequest, answer: Answer, said: Response) -> bool:
        """Send what an endpoint says."""
        head, stream = request.head, request.stream
        closes = ("Connection", "close") in said.headers
        if closes and not stream.is_complete:
            await self.slow_down()
        keeps = not closes and self.keeps(head, stream)
        data = answers.written(said, head, keeps=keeps)
        answer.is_sent, answer.size = True, len(said.body)
        await self.send(data)
        return keeps

    def keeps(self, head: Head, stream: BodyStream) -> bool:
        """Whether the connection is kept after an answer to this request."""
        return self._may_keep(head) and stream.skip()

    def _may_keep(self, head: Head) -> bool:
        return head.keeps_alive and not self._house.is_closing and self._house.keepalive > 0

    def _look_behind(self, request: IncomingRequest) -> None:
        """Charge from now on whom the proxy names."""
        forwarded = request.headers.get("x-forwarded-for", "")
        self._account.client = self._house.clients.at(self._peer[0], forwarded)

    def _settle(self, request: IncomingRequest) -> None:
        """Charge what the request cost."""
        self._stop_answering()
        self._since = _NEVER
        self._account.settle(is_genuine=request.is_genuine, is_replay=request.is_replay)

    def _stop_answering(self) -> None:
        if self._is_answering:
            self._is_answering = False
            self._house.turns.answering -= 1

    async def _stand_in_line(self) -> None:
        self._stop_answering()
        self._account.pause()
        await self._house.turns.wait(self._account.place)
        self._account.resume()
        if self._transport.is_expired:
            raise TooLate

    async def _wait_for(self, size: int) -> bytes:
        while True:
            if self._account.is_over or not self._account.is_small:
                await self._stand_in_line()
            data = self._transport.receive(size)
            if data is not None:
                return data
            await self._wait()

    async def _wait(self) -> None:
        self._account.pause()
        await self._transport.wait()
        self._account.resume()

    async def _invite(self) -> None:
        await self._transport.send(answers.CONTINUE)

    async def send(self, data: bytes) -> None:
        """Send a part of an answer, or all of it. Raises `Gone` and `TooLate`."""
        self._since, self._until = _NEVER, monotonic() + _ANSWER
        await self._transport.send(data)
        self._until = _NEVER

    async def _say_last(self, data: bytes) -> bool:
        """Send an answer after which nothing more is read; whether it could be sent."""
        try:
            self._hold(0)
            await self.slow_down()
            await self.send(data)
        except OSError:
            return False
        return True

    async def slow_down(self) -> None:
        """Wait before an answer that ends the connection, if there are many of them: each brings another connection."""
        self._stop_answering()
        self._until = _NEVER
        delay = self._house.refusals.delay(monotonic())
        if delay:
            self._house.crowd.rests(self)
            await asyncio.sleep(delay)
            self._house.crowd.works(self)

    async def _linger(self) -> None:
        """Listen to what is still coming for a while, so that the client gets the answer and not a reset."""
        self._since, self._until = _NEVER, monotonic() + _LINGER
        transport = self._transport
        try:
            transport.finish()
            self._house.crowd.rests(self)
            while transport.discard():
                await transport.wait()
                await self._house.turns.wait((_NEVER, _NEVER))
        except (Gone, TooLate):
            pass
