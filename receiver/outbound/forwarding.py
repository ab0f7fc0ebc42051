"""Sends a stored delivery once more, signed anew, and tells what the other side says.

The dashboard sends to addresses that the configuration allows, and reads nothing of the answer's body: its user learns
whether the delivery arrived, and nothing else of what is inside there.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import unquote, urlsplit

import requests
import urllib3

from hookonce.providers import Delivery
from hookonce.receiver.outbound.signing import EventName, NotSigned, signed_anew
from hookonce.receiver.source import Source

TIMEOUT = timedelta(seconds=10)


class NotSent(Exception):  # noqa: N818  a state of the world
    """It did not arrive; the text says why, and nothing of a secret."""

    def __init__(self, text: str, *, is_listening: bool = True) -> None:
        """Say why, and whether anything listens there at all."""
        super().__init__(text)
        self.is_listening = is_listening


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the other side, and how long it took; `text` is the beginning of its body, if that was read."""

    status: int
    took: timedelta
    text: str = ""


def allowed(url: str, prefixes: Sequence[str]) -> bool:
    """Whether an address begins with one that the configuration names: the same server, and a path below."""
    for prefix in prefixes:
        there, ours = urlsplit(url), urlsplit(prefix)
        same = (there.scheme, there.netloc) == (ours.scheme, ours.netloc)
        path = ours.path.rstrip("/")
        below = there.path == path or there.path.startswith(f"{path}/")
        if same and below and not _may_lead_up(there.path):
            return True
    return False


def _may_lead_up(path: str) -> bool:
    """Whether whoever reads a path may leave what it begins with: `..`, however it is written, or a backslash."""
    while (read := unquote(path)) != path:
        path = read
    return ".." in path or "\\" in path


def forward(
    source: Source, stored: Delivery, event: EventName, now: datetime, *, is_element: bool = False
) -> Answer:
    """Send a delivery to its `url`, signed with the source's first secret. Raises `NotSent`."""
    secret = next(iter(source.secrets), "")
    try:
        signed = signed_anew(source.provider, secret, stored, event, now, is_element=is_element)
    except NotSigned as error:
        raise NotSent(f"it can't be signed for {source.name}: {error}") from None
    return send(signed, TIMEOUT)


def send(delivery: Delivery, timeout: timedelta, *, reads: int = 0) -> Answer:
    """Send a delivery as it is, with no other headers, and no redirect followed. Raises `NotSent`.

    Of an answer that is no success so many bytes of the body are read at most.
    """
    began = time.monotonic()
    try:
        with requests.Session() as session:
            session.trust_env = False  # no proxy and no ~/.netrc: it goes where it says
            session.headers.clear()
            with session.request(
                delivery.method,
                delivery.url,
                data=delivery.body,
                headers={"connection": "close", **delivery.headers},
                timeout=timeout.total_seconds(),
                allow_redirects=False,
                stream=True,
            ) as response:
                is_read = reads and response.status_code >= 300  # noqa: PLR2004  HTTP's own classes
                text = response.raw.read(reads).decode(errors="replace") if is_read else ""
                return Answer(response.status_code, timedelta(seconds=time.monotonic() - began), text)
    except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
        raise NotSent(
            f"{urlsplit(delivery.url).netloc} did not answer: {error.__class__.__name__}",
            is_listening=not _is_refused(error),
        ) from None


def _is_refused(error: Exception) -> bool:
    """Whether nothing listens there, which stands below the words of requests and of urllib3."""
    reason = getattr(next(iter(error.args), None), "reason", None)
    return isinstance(reason, BaseException) and isinstance(reason.__cause__, ConnectionRefusedError)
