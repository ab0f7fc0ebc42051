"""Sends requests of a sender's API: https to hosts that its module names, no redirects, bounded in size and time.

A key goes to the host that it is for, and nowhere else: errors hold the host and the reason, never a header or a body.
"""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from hookonce.providers.kit.calls import Answer, CallFailed, Request
from hookonce.receiver.outbound.key_fetcher import session_until, without_credentials

TIMEOUT: Final = timedelta(seconds=30)
MAX_ANSWER: Final = 8 << 20
"""Bytes of an answer: a page of a hundred events has one megabyte at most."""
_READ_SIZE: Final = 64 * 1024

Call = Callable[[Request, Sequence[str]], Answer]
"""Sends a request to one of some hosts. Raises `CallFailed`."""


def call(request: Request, hosts: Sequence[str]) -> Answer:
    """Send a request to one of `hosts` by https and return the answer, a failure too. Raises `CallFailed`."""
    target = urlsplit(request.url)
    if target.scheme != "https" or target.netloc not in hosts:
        raise CallFailed("the address is not its sender's; nothing was sent")
    return exchange(request)


def exchange(request: Request) -> Answer:
    """Send a request as it is. Raises `CallFailed`."""
    until = time.monotonic() + TIMEOUT.total_seconds()
    headers = {"accept-encoding": "identity", "user-agent": "hookonce", **request.headers}
    try:
        with (
            session_until(until) as session,
            session.request(
                request.method,
                request.url,
                data=request.body or None,
                headers=headers,
                auth=without_credentials,
                timeout=(5, 15),
                allow_redirects=False,
                stream=True,
            ) as response,
        ):
            body = _body(response, until)
            return Answer(
                response.status_code, {name.lower(): value for name, value in response.headers.items()}, body
            )
    except (HTTPError, OSError, ValueError) as error:
        raise CallFailed(f"{urlsplit(request.url).hostname} did not answer: {type(error).__name__}") from None


def _body(response: requests.Response, until: float) -> bytes:
    """Read a body whole. Raises `CallFailed` where it is cut, too long or too slow."""
    found = b""
    while piece := response.raw.read(_READ_SIZE, decode_content=False):
        found += piece
        if len(found) > MAX_ANSWER:
            raise CallFailed(f"the answer has more than {MAX_ANSWER} bytes")
        if time.monotonic() > until:
            raise CallFailed("the answer takes too long")
    expected = response.headers.get("content-length", "")
    if expected.isdigit() and len(found) < int(expected):
        raise CallFailed("the answer was cut off")
    return found
