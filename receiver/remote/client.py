"""Requests of another inbox's admin API.

What answers need not be an inbox: it may be a proxy's page, a sign-in, something that never ends. So no redirect is
followed (the token would go along), every answer has a length and a time in which it must be there, and nothing is
taken for JSON of ours that does not say that it is.
"""

import json
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import requests

from hookonce.receiver.remote.addresses import address, is_loopback
from hookonce.receiver.remote.errors import NO_INBOX, Refused, RemoteError, Unreachable, plain
from hookonce.receiver.remote.profiles import Profile

CONNECT_TIMEOUT: Final = timedelta(seconds=10)
READ_TIMEOUT: Final = timedelta(seconds=30)
"""How long nothing may come."""
ANSWER_TIMEOUT: Final = timedelta(seconds=90)
"""How long an answer may take in all."""
LONGEST_ANSWER: Final = 64 * 1024 * 1024
TRIES: Final = 3
LONGEST_WAIT: Final = timedelta(seconds=30)
_IDLE: Final = timedelta(seconds=30)
"""A connection that lay idle for longer is not used again: the machine may have slept, or be in another network."""
_JSON = ("application/json", "application/problem+json")
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_SECONDS = re.compile("[0-9]{1,6}")
_UNKNOWN_PATH = "there is no such path"

T = TypeVar("T")


class Client:
    """The API of one inbox, under one token; for one thread at a time."""

    def __init__(self, profile: Profile, *, is_plain_allowed: bool = False) -> None:
        """Ask as a profile says, in the clear only on this machine, unless that is allowed. Raises: `BadAddress`."""
        self.url = address(profile.url, is_plain_allowed=is_plain_allowed)
        self._authorization = f"Bearer {profile.token}"
        self._session: requests.Session | None = None
        self._used = 0.0

    def get(self, path: str, *, tries: int = TRIES, **query: object) -> dict[str, Any]:
        """Return what the API shows; what is None is not asked. Raises: `Refused`, `Unreachable`."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self._patiently(lambda: self._send("GET", path, params=given), tries)

    def post(
        self, path: str, body: Mapping[str, object] | None = None, *, tries: int = TRIES, key: str = ""
    ) -> dict[str, Any]:
        """Have the API do something, once however often it is tried, and once per `key` if there is one.

        Raises: `Refused`, `Unreachable`.
        """
        options: dict[str, Any] = {"headers": {"Idempotency-Key": key or str(uuid.uuid4())}}
        if body is not None:
            options["json"] = dict(body)
        return self._patiently(lambda: self._send("POST", path, **options), tries)

    def request(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> dict[str, Any] | None:
        """Make a request of another method, once; None where it is answered without a body. Raises: `RemoteError`."""
        options: dict[str, Any] = {} if body is None else {"json": dict(body)}
        return self._send(method, path, **options) or None

    def download(self, path: str) -> bytes:
        """Return what the API gives as a file. Raises: `Refused`, `Unreachable`."""
        answer, content = self._exchange("GET", path, {"headers": {"Accept": "application/octet-stream"}})
        if answer.ok and answer.headers.get("Content-Type") == "application/octet-stream":
            return content
        self._read(answer, content, is_probe=False)
        raise Refused(f"the server at {self.url} is no file of an inbox")

    def version(self) -> str:
        """Return the version of hookonce that answers there; empty if it does not say."""
        try:
            return plain(self._send("GET", "/openapi.json", is_probe=True)["info"]["version"])
        except (RemoteError, LookupError, TypeError):
            return ""

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _patiently(self, ask: Callable[[], T], tries: int) -> T:
        for number in range(1, tries):
            try:
                return ask()
            except Unreachable as error:
                time.sleep(pause(number, error.wait).total_seconds())
        return ask()

    def _send(self, method: str, path: str, *, is_probe: bool = False, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        return self._read(*self._exchange(method, path, options), is_probe=is_probe)

    def _exchange(
        self, method: str, path: str, options: Mapping[str, Any]
    ) -> tuple[requests.Response, bytes]:
        if time.monotonic() - self._used > _IDLE.total_seconds():
            self.close()
        session = self._session = self._session or self._opened()
        outcome: list[tuple[requests.Response, bytes] | BaseException] = []

        def ask() -> None:
            try:
                outcome.append(
                    _answer(session, method, f"{self.url}/api/v1{path}", self._authorized, options)
                )
            except BaseException as error:  # noqa: BLE001  told to who waits for it
                outcome.append(error)

        # In a thread, since an answer that comes a byte at a time outlasts every timeout of a socket.
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(ANSWER_TIMEOUT.total_seconds())
        self._used = time.monotonic()
        if not outcome:
            self.close()
            raise Unreachable(
                f"{self.url} takes longer than {ANSWER_TIMEOUT.total_seconds():.0f} s for an answer"
            )
        found = outcome[0]
        if isinstance(found, requests.RequestException):
            self.close()
            raise Unreachable(f"{self.url} does not answer: {_why(found)}") from None
        if isinstance(found, BaseException):
            self.close()
            raise found
        return found

    def _opened(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = not is_loopback(
            urlsplit(self.url).hostname or ""
        )  # proxies and certificates of elsewhere
        return session

    def _authorized(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = (
            self._authorization
        )  # as a header alone, it would give way to ~/.netrc
        return request

    def _read(self, answer: requests.Response, content: bytes, *, is_probe: bool) -> dict[str, Any]:
        """Return the JSON of an answer. Raises: `Refused`, `Unreachable`."""
        status, kind = (
            answer.status_code,
            answer.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
        )
        if len(content) > LONGEST_ANSWER:
            self.close()
            raise Refused(f"the answer of {self.url} is longer than {LONGEST_ANSWER >> 20} MiB; ask for less")
        if answer.is_redirect or 300 <= status < 400:  # noqa: PLR2004  HTTP's own classes
            where = urlsplit(answer.headers.get("Location", "")).netloc or "another path"
            raise Refused(
                f"{self.url} redirects to {plain(where)}, and no token is sent there; "
                "log in at the address where the inbox itself answers",
                NO_INBOX,
            )
        if status == requests.codes.no_content:
            return {}
        document = _document(content) if kind in _JSON else None
        if document is None:
            if status in _AGAIN:
                raise Unreachable(
                    f"{self.url} is not reached: something before it answers {status}", _wait(answer)
                )
            told = f"{status}, {plain(kind) or 'of no type'}"
            raise Refused(
                f"the server at {self.url} is no inbox ({told}): a proxy, a sign-in page, or another address",
                NO_INBOX,
            )
        if answer.ok and status != requests.codes.accepted:
            return document
        raise self._refusal(answer, document, is_probe=is_probe)

    def _refusal(self, answer: requests.Response, document: dict[str, Any], *, is_probe: bool) -> RemoteError:
        status, code = answer.status_code, plain(document.get("code", ""))
        said = plain(document.get("detail") or document.get("title") or "it does not say why")
        if status in _AGAIN or status == requests.codes.accepted:
            return Unreachable(f"{self.url}: {said} ({status})", _wait(answer))
        is_page = status == requests.codes.not_found and not document.get("detail")
        if is_page:
            said = "no inbox answers at this path; see `public_url` and the path of its proxy"
        is_other = is_page or said.startswith(_UNKNOWN_PATH) or bool(document.get("errors"))
        if not is_probe and is_other and not is_page:
            said += f" (hookonce {self.version() or 'of another version'} answers there)"
        return Refused(f"{self.url}: {said} ({status})", code, "" if is_other else said, status)


def pause(number: int, wait: timedelta = timedelta(0)) -> timedelta:
    """Return how long to wait after so many tries that failed: doubling, spread, and `wait` if that is longer."""
    usual = min(0.5 * 2 ** min(number - 1, 10), LONGEST_WAIT.total_seconds())
    spread = timedelta(seconds=usual * random.uniform(0.5, 1))  # noqa: S311  no secret
    return min(max(spread, wait), 4 * LONGEST_WAIT)


def _answer(
    session: requests.Session,
    method: str,
    url: str,
    authorized: Callable[[requests.PreparedRequest], requests.PreparedRequest],
    options: Mapping[str, Any],
) -> tuple[requests.Response, bytes]:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", **options.get("headers", {})}
    rest = {name: value for name, value in options.items() if name != "headers"}
    timeout = (CONNECT_TIMEOUT.total_seconds(), READ_TIMEOUT.total_seconds())
    with session.request(
        method,
        url,
        headers=headers,
        auth=authorized,
        timeout=timeout,
        allow_redirects=False,
        stream=True,
        **rest,
    ) as answer:
        content = bytearray()
        for piece in answer.iter_content(65_536):
            content += piece
            if len(content) > LONGEST_ANSWER:
                break
        return answer, bytes(content)


def _document(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _wait(answer: requests.Response) -> timedelta:
    said = answer.headers.get("Retry-After", "")
    return min(timedelta(seconds=int(said)), LONGEST_WAIT) if _SECONDS.fullmatch(said) else timedelta(0)


def _why(error: requests.RequestException) -> str:
    """Return what failed, in words; nothing of the request is in it."""
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate is not trusted here (SSL_CERT_FILE and REQUESTS_CA_BUNDLE name others)"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy of the environment (HTTPS_PROXY) lets nothing through"
    if isinstance(error, requests.Timeout):
        return "nothing came in time"
    return f"{type(error).__name__}; is the address right, and this machine in a network?"
