"""Fetches what providers ask for: certificates and key sets of senders, and the confirmation of a subscription.

Only https, only whole URLs that the provider declares (exact hosts), no redirects, bounded in size and time, TLS
checked as usual. What was fetched is kept for an hour, and for a day if its server does not answer then; a set
without the key that a token names is fetched again, at most once a minute. A server that fails is left alone for a
while. Every fetch has a thread of its own, and is waited for only so long. Each source has a few fetches
at once and some a minute. So a hung server holds up nobody else. A key that can't be had is our trouble, not a verdict:
the sender must come again.

An attacker who forges deliveries chooses the names in them. So a name is *proven* once a delivery verified with its
document, and a *stranger* until then, and the two have nothing in common: not the documents that are kept, nor the
failures that are remembered, nor a source's fetches. Whatever strangers ask for, a proven document is kept, and
fetched again in time.

A certificate that its sender has just rotated is a stranger. Most fetches of strangers are for who comes first, but
one every few seconds is for the name that was asked for in vain most often. A sender names its new certificate in every
delivery and retry; a forged name loses its place as soon as its fetch has failed. So a flood of ever new names holds a
rotation up until the new name was asked for more than once and a turn has come: as long as one of `MAX_WANTED_NAMES`
requests is for it. A flood that asks for each of its names more often than the sender has asked since the rotation can
keep the new one away longer, at a price that grows with each retry; meanwhile the sender hears 503, and comes again.
All this is known to one process only: each has to fetch, and to prove, for itself.
"""

import hashlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPSConnectionPool
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError

from hookonce.providers import KeyNeeded, Reason, Rejected
from hookonce.providers.kit.crypto.fetched_keys import may_fetch
from hookonce.receiver.outbound.fetch_limits import Books, Document, Fetch, FetchBudget
from hookonce.receiver.source import Source

FETCH_TIMEOUT: Final = timedelta(seconds=3)
"""As long as a delivery waits for a fetch; senders wait for 3 to 30 s."""
FRESH_TTL: Final = timedelta(hours=1)
STALE_TTL: Final = timedelta(days=1)
REFETCH_INTERVAL: Final = timedelta(minutes=1)
"""A document is not fetched again sooner, however many deliveries name keys that it lacks."""
MAX_DOCUMENT_SIZE: Final = 256 * 1024
_READ_SIZE: Final = 16 * 1024
_READ_TIMEOUTS: Final = (2.0, 2.0)  # seconds to connect, and between two pieces
_MAX_DOCUMENTS_PER_DELIVERY: Final = 4  # how many documents one delivery may need, or need anew
_Result = TypeVar("_Result")


class KeyUnavailable(Exception):  # noqa: N818  a state, answered with 503
    """A key could not be fetched, so nothing can be said about a delivery; the sender must try again."""


class _FetchFailed(Exception):  # noqa: N818  short, and never leaves this module
    """A fetch failed; `is_hosts` if the whole host is to be left alone."""

    def __init__(self, why: str, *, is_hosts: bool) -> None:
        super().__init__(why)
        self.is_hosts = is_hosts


class KeyFetcher:
    """The documents that were fetched, and how to get the rest; one per process, for all sources."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, fetch_timeout: timedelta = FETCH_TIMEOUT
    ) -> None:
        self.fetch_timeout = fetch_timeout
        self._clock = clock
        self._lock = threading.Lock()  # for the books below, never held while fetching
        self._proven = Books()
        self._strangers = Books()

    def call_with_keys(self, source: Source, function: Callable[..., _Result], *arguments: Any) -> _Result:  # noqa: ANN401
        """Call a function of the source's provider, with the keys it asks for if it takes any.

        The keys with which a delivery verified are proven by that: when `verify` returns, or anything else returns
        more than None. (A handshake that was forged ends with None.)

        Raises `Rejected` (also for a URL that the provider may not have) and `KeyUnavailable`.
        """
        if not source.provider.takes_keys:
            return function(*arguments)
        keys: Mapping[str, bytes] = {}
        used: dict[str, Document] = {}
        for _ in range(_MAX_DOCUMENTS_PER_DELIVERY):
            try:
                result = function(*arguments, keys=keys)
            except KeyNeeded as needed:
                document = self._document(source, needed, keys.get(needed.url))
                keys = {**keys, needed.url: document.content}
                used[_document_name(needed.url, needed.post)] = document
            else:
                if result is not None or function == source.provider.verify:
                    self._prove(used)
                return result
        raise Rejected(Reason.BAD_SIGNATURE, "the delivery names too many keys")

    def confirm(self, source: Source, url: str) -> None:
        """Fetch a URL that confirms a subscription, each time. Raises `Rejected`, `KeyUnavailable`.

        Providers ask for it when they have verified who wants to be confirmed, so it is none of the strangers' fetches.
        """
        _expect_allowed(source, url)
        self._fetch_shared(self._proven, source.name, url, None)

    def _document(self, source: Source, needed: KeyNeeded, had: bytes | None) -> Document:
        """Return the document a provider needs, a newer one if what it `had` is not enough."""
        _expect_allowed(source, needed.url)
        name = _document_name(needed.url, needed.post)
        with self._lock:
            books = self._proven if name in self._proven.documents else self._strangers
            known = books.documents.get(name)
        age = timedelta(seconds=self._clock() - known.fetched) if known else STALE_TTL
        if known and had is None and age < FRESH_TTL:
            return known
        if known and had is not None and age < REFETCH_INTERVAL:
            raise Rejected(
                Reason.BAD_SIGNATURE, "the sender knows no key of the name that the delivery gives"
            )
        try:
            content = self._fetch_shared(books, source.name, needed.url, needed.post)
        except KeyUnavailable:
            if known and had is None and age < STALE_TTL:
                return known
            raise
        document = Document(content, self._clock())
        with self._lock:
            (self._proven if name in self._proven.documents else self._strangers).keep(name, document)
        return document

    def _prove(self, used: Mapping[str, Document]) -> None:
        """Keep documents among the proven ones, where no stranger can push them out."""
        with self._lock:
            for name, document in used.items():
                self._strangers.documents.pop(name, None)
                known = self._proven.documents.get(name, document)
                self._proven.keep(name, max(known, document, key=lambda each: each.fetched))

    def _fetch_shared(self, books: Books, source: str, url: str, post: bytes | None) -> bytes:
        """Fetch `url`, or wait for whoever does. Raises `KeyUnavailable`."""
        name = _document_name(url, post)
        with self._lock:
            budget = books.budgets[source]
            fetch = budget.fetches.get(name)
            if fetch is None:
                self._expect_room(books, source, url, name)
                fetch = budget.fetches[name] = Fetch()
                arguments = (books, budget, url, post, fetch)
                threading.Thread(
                    target=self._run_fetch, args=arguments, daemon=True, name="hookonce-keys"
                ).start()
        fetch.done.wait(self.fetch_timeout.total_seconds())
        if fetch.content is None:
            host = urlsplit(url).hostname  # and no more: the rest may hold a token
            raise KeyUnavailable(f"no answer from {host}: {fetch.why}")
        return fetch.content

    def _expect_room(self, books: Books, source: str, url: str, name: str) -> None:
        """Refuse a fetch that would be one too many. Raises `KeyUnavailable`."""
        now, host, budget = self._clock(), str(urlsplit(url).hostname), books.budgets[source]
        if self._proven.is_left_alone(host, now) or books.is_left_alone(name, now):
            raise KeyUnavailable(f"{host} failed a moment ago")
        is_failing = books.is_left_alone(
            host, now
        )  # by what strangers say, who may have named what can only fail
        if not is_failing and not budget.is_spent(now):
            budget.starts.append(now)
            return
        if books is self._strangers:
            budget.wanted.ask(name, now)
            if budget.takes_turn(name, now):
                budget.wanted.forget(name)
                return
        raise KeyUnavailable(
            f"{host} failed a moment ago" if is_failing else f"source '{source}' asks for too many keys"
        )

    def _run_fetch(
        self, books: Books, budget: FetchBudget, url: str, post: bytes | None, fetch: Fetch
    ) -> None:
        name, host = _document_name(url, post), str(urlsplit(url).hostname)
        failure: _FetchFailed | None = _FetchFailed("a bug", is_hosts=True)
        try:
            fetch.content, failure = _fetch(url, post, self.fetch_timeout), None
        except _FetchFailed as error:
            failure, fetch.why = error, str(error)
        finally:
            with self._lock:
                budget.fetches.pop(name, None)
                self._record(books, host, name, failure)
            fetch.done.set()

    def _record(self, books: Books, host: str, name: str, failure: _FetchFailed | None) -> None:
        if failure is None:
            self._proven.backoffs.pop(host, None)
            books.backoffs.pop(host, None)
            books.backoffs.pop(name, None)
            return
        now = self._clock()
        if failure.is_hosts:
            books.record_failure(host, now)
        if books is self._strangers or not failure.is_hosts:
            books.record_failure(name, now)


def _expect_allowed(source: Source, url: str) -> None:
    if not may_fetch(url, source.provider.fetches):
        raise Rejected(Reason.BAD_SIGNATURE, "the delivery names a URL that is not its sender's")


def _document_name(url: str, post: bytes | None) -> str:
    """Return what a document is kept under: the credentials that it took are a part of it, hashed."""
    return f"{url} {hashlib.sha256(post).hexdigest()}" if post else url


def _fetch(url: str, post: bytes | None, timeout: timedelta) -> bytes:
    """Fetch one document within `timeout`. Raises `_FetchFailed`."""
    headers = {"Accept-Encoding": "identity", "User-Agent": "hookonce"}
    headers |= {"Content-Type": "application/json"} if post else {}
    until = time.monotonic() + timeout.total_seconds()
    try:
        with (
            session_until(until) as session,
            session.request(
                "POST" if post else "GET",
                url,
                data=post,
                headers=headers,
                auth=without_credentials,
                timeout=_READ_TIMEOUTS,
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            return _content(response, until)
    except (HTTPError, OSError) as error:  # urllib3's own while the body is read; requests' are OSErrors
        raise _FetchFailed(type(error).__name__, is_hosts=True) from None


def session_until(until: float) -> requests.Session:
    """Return a session that is cut off at a time: what a server drips in is never late between two bytes."""

    class Connection(HTTPSConnection):
        _end: threading.Timer | None = None

        def connect(self) -> None:
            super().connect()
            self._end = threading.Timer(max(0.0, until - time.monotonic()), _cut_off, [self.sock])
            self._end.daemon = True
            self._end.start()

        def close(self) -> None:
            if self._end is not None:
                self._end.cancel()
            super().close()

    class Pool(HTTPSConnectionPool):
        ConnectionCls = Connection

    adapter = HTTPAdapter()
    adapter.poolmanager.pool_classes_by_scheme = {"https": Pool}
    session = requests.Session()
    session.mount("https://", adapter)
    return session


def _cut_off(opened: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)


def without_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send no credentials: without this, requests would look into ~/.netrc."""
    return request


def _content(response: requests.Response, until: float) -> bytes:
    status = response.status_code
    if status != requests.codes.ok:
        is_hosts = status >= requests.codes.server_error or status == requests.codes.too_many_requests
        raise _FetchFailed(f"status {status}", is_hosts=is_hosts)
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _FetchFailed("the document is compressed", is_hosts=False)
    content = b""
    while piece := response.raw.read1(_READ_SIZE, decode_content=False):
        content += piece
        if len(content) > MAX_DOCUMENT_SIZE:
            raise _FetchFailed(f"the document has more than {MAX_DOCUMENT_SIZE} bytes", is_hosts=False)
        if time.monotonic() > until:
            break
    if time.monotonic() > until:  # it may have been cut off
        raise _FetchFailed("the document takes too long", is_hosts=True)
    return content
