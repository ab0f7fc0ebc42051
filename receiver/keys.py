"""Fetches what providers ask for: certificates and key sets of senders, and the confirmation of a subscription.

Only https, only whole URLs that the provider declares (exact hosts), no redirects, bounded in size and time, TLS
checked as usual. What was fetched is kept for an hour, and for a day if its server does not answer then; a set
without the key that a token names is fetched again, at most once a minute. A server that fails is left alone for a
while. Every fetch has a thread of its own: whoever waits for it does so for a bounded time, and each source has
a few fetches at once and some a minute, so a hung server, or a flood of forged deliveries that name ever new
keys, holds up nobody else. A key that can't be had is our trouble, not a verdict: the sender must come again.
"""

import hashlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from providers import KeyNeeded, Reason, Rejected
from providers.kit.fetched import may_fetch
from receiver.sources import Source

PATIENCE: Final = timedelta(seconds=3)
"""As long as a delivery waits for a fetch; senders wait for 3 to 30 s."""
FRESH: Final = timedelta(hours=1)
KEPT: Final = timedelta(days=1)
ANEW: Final = timedelta(minutes=1)
"""A document is not fetched again sooner, however many deliveries name keys that it lacks."""
LARGEST: Final = 256 * 1024
_MOST_DOCUMENTS: Final = 128
_MOST_FAULTS: Final = 512
_AT_ONCE: Final = 4
_A_MINUTE: Final = 30
_LONGEST_FAULT: Final = timedelta(minutes=1)
_PIECE: Final = 16 * 1024
_READ: Final = (2.0, 2.0)  # seconds to connect, and between two pieces
_ROUNDS: Final = 4  # how many documents one delivery may need, or need anew
_Result = TypeVar("_Result")


class KeyUnavailable(Exception):  # noqa: N818  a state, answered with 503
    """A key could not be fetched, so nothing can be said about a delivery; the sender must try again."""


class _Fault(Exception):  # noqa: N818  short, and never leaves this module
    """A fetch failed; `is_hosts` if the whole host is to be left alone."""

    def __init__(self, why: str, *, is_hosts: bool) -> None:
        super().__init__(why)
        self.is_hosts = is_hosts


@dataclass(slots=True)
class _Document:
    content: bytes
    fetched: float


@dataclass(slots=True)
class _Pause:
    """After failures: how many in a row, and until when nothing is tried."""

    failures: int = 0
    until: float = 0.0


@dataclass(slots=True)
class _Flight:
    """A fetch under way."""

    done: threading.Event = field(default_factory=threading.Event)
    content: bytes | None = None
    why: str = "the server does not answer"


class Keys:
    """What was fetched, and how to get the rest; one per process, for all sources."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # for the books below, never held while fetching
        self._documents: OrderedDict[str, _Document] = OrderedDict()
        self._pauses: OrderedDict[str, _Pause] = OrderedDict()
        self._flights: dict[str, dict[str, _Flight]] = {}
        self._starts: dict[str, deque[float]] = {}

    def call(self, source: Source, function: Callable[..., _Result], *arguments: Any) -> _Result:  # noqa: ANN401
        """Call a function of the source's provider, with the keys it asks for if it takes any.

        Raises `Rejected` (also for a URL that the provider may not have) and `KeyUnavailable`.
        """
        if not source.provider.takes_keys:
            return function(*arguments)
        keys: Mapping[str, bytes] = {}
        for _ in range(_ROUNDS):
            try:
                return function(*arguments, keys=keys)
            except KeyNeeded as needed:
                document = self._document(source, needed, keys.get(needed.url))
                keys = {**keys, needed.url: document}
        raise Rejected(Reason.BAD_SIGNATURE, "the delivery names too many keys")

    def confirm(self, source: Source, url: str) -> None:
        """Fetch a URL that confirms a subscription, each time. Raises `Rejected`, `KeyUnavailable`."""
        _expect_allowed(source, url)
        self._flown(source.name, url, None)

    def _document(self, source: Source, needed: KeyNeeded, had: bytes | None) -> bytes:
        """The document a provider needs, a newer one if what it `had` is not enough."""
        _expect_allowed(source, needed.url)
        name = _name(needed.url, needed.post)
        with self._lock:
            known = self._documents.get(name)
            if known:
                self._documents.move_to_end(name)
        age = timedelta(seconds=self._clock() - known.fetched) if known else KEPT
        if known and had is None and age < FRESH:
            return known.content
        if known and had is not None and age < ANEW:
            raise Rejected(
                Reason.BAD_SIGNATURE, "the sender knows no key of the name that the delivery gives"
            )
        try:
            content = self._flown(source.name, needed.url, needed.post, is_known=known is not None)
        except KeyUnavailable:
            if known and had is None and age < KEPT:
                return known.content
            raise
        self._keep(name, content)
        return content

    def _keep(self, name: str, content: bytes) -> None:
        with self._lock:
            self._documents[name] = _Document(content, self._clock())
            self._documents.move_to_end(name)
            while len(self._documents) > _MOST_DOCUMENTS:
                self._documents.popitem(last=False)

    def _flown(self, source: str, url: str, post: bytes | None, *, is_known: bool = False) -> bytes:
        """Fetch `url`, or wait for whoever does. Raises `KeyUnavailable`."""
        name = _name(url, post)
        with self._lock:
            flight = self._flights.setdefault(source, {}).get(name)
            if flight is None:
                self._expect_room(source, url, name, is_known=is_known)
                flight = self._flights[source][name] = _Flight()
                arguments = (source, url, post, flight)
                threading.Thread(target=self._fly, args=arguments, daemon=True, name="hookonce-keys").start()
        flight.done.wait(PATIENCE.total_seconds())
        if flight.content is None:
            host = urlsplit(url).hostname  # and no more: the rest may hold a token
            raise KeyUnavailable(f"no answer from {host}: {flight.why}")
        return flight.content

    def _expect_room(self, source: str, url: str, name: str, *, is_known: bool) -> None:
        """Refuse a fetch that would be one too many. Raises `KeyUnavailable`."""
        now, host = self._clock(), str(urlsplit(url).hostname)
        if any(pause.until > now for key in (host, name) if (pause := self._pauses.get(key))):
            raise KeyUnavailable(f"{host} failed a moment ago")
        starts = self._starts.setdefault(source, deque(maxlen=_A_MINUTE))
        is_flood = len(starts) == _A_MINUTE and now - starts[0] < ANEW.total_seconds() and not is_known
        if len(self._flights[source]) >= _AT_ONCE or is_flood:
            raise KeyUnavailable(f"source '{source}' asks for too many keys")
        if not is_known:
            starts.append(now)

    def _fly(self, source: str, url: str, post: bytes | None, flight: _Flight) -> None:
        name, host = _name(url, post), str(urlsplit(url).hostname)
        fault: _Fault | None = _Fault("a bug", is_hosts=True)
        try:
            flight.content, fault = _fetch(url, post), None
        except _Fault as error:
            fault, flight.why = error, str(error)
        finally:
            with self._lock:
                self._flights[source].pop(name, None)
                self._note(host if fault is None or fault.is_hosts else name, is_fault=fault is not None)
            flight.done.set()

    def _note(self, key: str, *, is_fault: bool) -> None:
        if not is_fault:
            self._pauses.pop(key, None)
            return
        pause = self._pauses.setdefault(key, _Pause())
        pause.failures += 1
        pause.until = self._clock() + min(2.0 ** min(pause.failures, 10), _LONGEST_FAULT.total_seconds())
        self._pauses.move_to_end(key)
        while len(self._pauses) > _MOST_FAULTS:
            self._pauses.popitem(last=False)


def _expect_allowed(source: Source, url: str) -> None:
    if not may_fetch(url, source.provider.fetches):
        raise Rejected(Reason.BAD_SIGNATURE, "the delivery names a URL that is not its sender's")


def _name(url: str, post: bytes | None) -> str:
    """What a document is kept under: the credentials that it took are a part, and not in the open."""
    return f"{url} {hashlib.sha256(post).hexdigest()}" if post else url


def _fetch(url: str, post: bytes | None) -> bytes:
    """Fetch one document. Raises `_Fault`."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "hookonce"}
    headers |= {"Content-Type": "application/json"} if post else {}
    until = time.monotonic() + PATIENCE.total_seconds()
    try:
        with (
            requests.Session() as session,
            session.request(
                "POST" if post else "GET",
                url,
                data=post,
                headers=headers,
                auth=_nobody,
                timeout=_READ,
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            return _content(response, until)
    except (HTTPError, OSError) as error:  # urllib3's own while the body is read; requests' are OSErrors
        raise _Fault(type(error).__name__, is_hosts=True) from None


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send no credentials: without this, requests would look into ~/.netrc."""
    return request


def _content(response: requests.Response, until: float) -> bytes:
    status = response.status_code
    if status != requests.codes.ok:
        is_hosts = status >= requests.codes.server_error or status == requests.codes.too_many_requests
        raise _Fault(f"status {status}", is_hosts=is_hosts)
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _Fault("the document is compressed", is_hosts=False)
    content = b""
    while piece := response.raw.read1(_PIECE, decode_content=False):
        content += piece
        if len(content) > LARGEST:
            raise _Fault(f"the document has more than {LARGEST} bytes", is_hosts=False)
        if time.monotonic() > until:
            raise _Fault("the document takes too long", is_hosts=True)
    return content
