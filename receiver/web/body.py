"""Reads a request's body: all of it, no more than allowed, and not for ever.

Done here and not by Flask because a chunked body over MAX_CONTENT_LENGTH would be cut and passed on, and a
body that ends early would be passed on as complete (gunicorn 27, Werkzeug 3.1).
"""

import io
import threading
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from gunicorn.http.errors import ParseException

from hookonce.providers import Reason, Rejected
from hookonce.providers.kit.reading.content_coding import coding_of, longest_text
from hookonce.receiver.processes.waits import IN_THREAD, Waits, run
from hookonce.receiver.web.request import Request, WsgiRequest

SMALL_BODY = 64 * 1024
"""Bodies up to this size are always let in: with `worker_connections` they are bounded too."""
READ_SIZE = 64 * 1024


PATIENCE = timedelta(seconds=4)
"""How long a body waits for memory: a sender waits for some ten seconds, and the ledger needs a part of them."""


class Overloaded(Exception):  # noqa: N818  a state of the process, answered with 503
    """This process holds as many bytes of large bodies as it may; the sender must try again."""

    line = "overloaded: %s"


class BodyDropped(Overloaded):
    """The server that runs the application has left a body out; the sender must try again."""

    line = "body dropped: %s"


class MemoryBudget:
    """The memory that one process has for large bodies under way; counted as they arrive, not as announced.

    So a client that announces much and sends nothing takes nothing. A body that finds too little left waits until
    others are done, first come, first served. One of them goes on all the same, and takes as much as `largest` (a body
    and its text, where it is compressed), which is kept for it: else all might wait for each other, each with a part of
    its body.
    """

    def __init__(self, size: int, largest: int = 0) -> None:
        self.left = size - largest
        self._has_spare = largest > 0
        self._first: Reservation | None = None  # who goes on all the same
        self._waiting: deque[tuple[Reservation, int, Any]] = deque()  # how much each wants, and its bell
        self._lock = threading.Lock()

    async def take(self, size: int, whose: "Reservation") -> bool:
        """Set so much apart, when it is there; False if it was not in time."""
        with self._lock:
            if self._has_taken(size, whose):
                return True
            whose.has_waited = True
            wanted = (whose, size, whose.waits.bell())
            self._waiting.append(wanted)
        is_taken = False
        try:
            is_taken = await whose.waits.rung(wanted[2], PATIENCE)
        finally:
            if not is_taken:
                with self._lock:
                    is_taken = wanted not in self._waiting  # in the last moment
                    if not is_taken:
                        self._waiting.remove(wanted)
        return is_taken

    def give_back(self, whose: "Reservation") -> None:
        """Take back what was set apart, and let those go on who wait for it."""
        with self._lock:
            self.left += whose.held
            if self._first is whose:
                self._first = None
            while self._waiting and self._has_taken(self._waiting[0][1], self._waiting[0][0]):
                other, _, bell = self._waiting.popleft()
                other.waits.ring([bell])

    def _has_taken(self, size: int, whose: "Reservation") -> bool:
        if size > self.left and self._first is not whose:
            if self._first is not None or not self._has_spare:
                return False
            self._first = whose
        self.left -= size
        whose.held += size
        return True


class Reservation:
    """The memory that one request holds, until its `with` block ends."""

    def __init__(self, budget: MemoryBudget, waits: Waits = IN_THREAD) -> None:
        self.waits = waits
        self.held = 0
        self.has_waited = False
        self._budget = budget

    async def reserve(self, size: int) -> None:
        """Hold enough for a body of `size` bytes, waiting for it if need be. Raises `Overloaded`."""
        more = max(0, size - SMALL_BODY) - self.held
        if more > 0 and not await self._budget.take(more, self):
            raise Overloaded("the bodies under way fill the memory set aside for them")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.held:
            self._budget.give_back(self)


def read_wsgi_body(environ: dict[str, Any], limit: int, reservation: Reservation) -> bytes:
    """Read the body of a WSGI request in the thread that calls; as `read_body`."""
    return run(read_body(WsgiRequest(environ), limit, reservation))


async def read_body(
    request: Request, limit: int, reservation: Reservation, *, may_be_compressed: bool = False
) -> bytes:
    """Read the raw body of at most `limit` bytes, holding memory for it, and for its text, in `reservation`.

    Raises `Rejected`: `too_large` beyond the limit (before reading where Content-Length says so),
    `unsupported_encoding`, `bad_body` for one that ends early, `too_slow` for one that takes too long.
    Raises `Overloaded` too, also where a body took too long because it waited for memory, and `BodyDropped`.
    """
    headers = request.headers
    coding = coding_of(headers)
    if coding and not may_be_compressed:
        raise Rejected(Reason.UNSUPPORTED_ENCODING, "the body is compressed; send it as it is")
    length = _content_length(headers.get("content-length", ""))
    if length is not None and length > limit:
        raise Rejected(Reason.TOO_LARGE, f"the body has {length} bytes, {limit} are allowed")
    if length is None and not request.is_bounded:
        return b""
    try:
        body = await _read(request, limit + 1 if length is None else length, reservation)
    except TimeoutError:
        if reservation.has_waited:
            raise Overloaded("a body that waited for memory was not read in time") from None
        raise Rejected(Reason.TOO_SLOW, "the body did not arrive in time") from None
    except (OSError, ValueError, ParseException) as error:  # the last: gunicorn's, for chunks and trailers
        raise Rejected(Reason.BAD_BODY, f"the body could not be read: {type(error).__name__}") from None
    _expect_whole(body, length, limit, headers)
    if coding:
        await reservation.reserve(len(body) + (longest_text(body, coding, limit) or 0))
    return body


def _expect_whole(body: bytes, length: int | None, limit: int, headers: Mapping[str, str]) -> None:
    if not body and "upgrade" in headers and (length or "transfer-encoding" in headers):
        raise BodyDropped(
            "the server passed on no body of a request that offers an Upgrade, as Java's HttpClient does; "
            "run `uvicorn --http h11`, or another server"
        )
    if len(body) > limit:
        raise Rejected(Reason.TOO_LARGE, f"the body has more than the {limit} bytes allowed")
    if length is not None and len(body) < length:
        raise Rejected(Reason.BAD_BODY, f"the body ended after {len(body)} of {length} bytes")


def _content_length(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004  digits of a 64-bit number
        raise Rejected(Reason.BAD_HEADER, "Content-Length is not a number")
    return int(text)


async def _read(request: Request, size: int, reservation: Reservation) -> bytes:
    """Read up to `size` bytes; the request knows how long they may take.

    Raises: OSError (`TimeoutError` where it took too long), ValueError and `Overloaded`.
    """
    first = await request.piece(min(READ_SIZE, size)) if size else b""
    if len(first) == size:  # nearly all: they came whole
        if size > SMALL_BODY:
            await reservation.reserve(size)
        return first
    body = io.BytesIO()
    body.write(first)
    await reservation.reserve(len(first))
    while (left := size - body.tell()) > 0 and (piece := await request.piece(min(READ_SIZE, left))):
        body.write(piece)
        await reservation.reserve(body.tell())
    return body.getvalue()
