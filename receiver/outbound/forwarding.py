"""Sends a stored delivery once more, signed anew, to an address that the configuration allows, and tells the status.

Nothing of the answer's body is read: who asks learns whether it arrived, and nothing else of what is inside there.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import unquote, urlsplit

import requests

from hookonce.providers import Delivery
from hookonce.receiver.source import Source

TIMEOUT = timedelta(seconds=10)
_OUR_OWN = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "accept-encoding", "cookie"}
)
_MASK = "[secret]"


class NotSent(Exception):  # noqa: N818  a state of the world
    """It did not arrive; the text says why, and nothing of a secret."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the other side said, and how long it took."""

    status: int
    took: timedelta


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


def forward(source: Source, stored: Delivery, event_id: str, type: str, now: datetime) -> Answer:  # noqa: A002
    """POST a delivery to its `url`, signed with the source's first secret. Raises `NotSent`."""
    try:
        signed = source.provider.delivery(
            stored.body,
            next(iter(source.secrets), ""),
            now,
            event_id=event_id,
            type=type,
            url=stored.url,
            method="POST",
        )
    except ValueError as error:
        raise NotSent(f"it can't be signed for {source.name}: {error}") from None
    kept = {
        name: value
        for name, value in stored.headers.items()
        if name.lower() not in _OUR_OWN and _MASK not in value
    }
    headers = kept | {name.lower(): value for name, value in signed.headers.items()}
    began = time.monotonic()
    try:
        with requests.Session() as session:
            session.trust_env = False  # no proxy and no ~/.netrc: it goes where it says
            with session.post(
                signed.url or stored.url,
                data=signed.body,
                headers=headers,
                timeout=TIMEOUT.total_seconds(),
                allow_redirects=False,
                stream=True,
            ) as response:
                return Answer(response.status_code, timedelta(seconds=time.monotonic() - began))
    except requests.RequestException as error:
        raise NotSent(f"{urlsplit(stored.url).netloc} did not answer: {error.__class__.__name__}") from None
