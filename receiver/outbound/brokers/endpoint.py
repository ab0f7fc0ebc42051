"""A POST to an endpoint of the configuration: its name is resolved once, and the connection goes to that address.

So nobody who answers for a name can have it lead elsewhere between the check and the connection. The certificate is
checked for the name. No redirect is followed, no proxy is asked, and nothing of the answer's body is read.
"""

import ipaddress
import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPResponse, parse_headers
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import urllib3
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.connection import HTTPConnection, HTTPSConnection

from hookonce.receiver.outbound.brokers.port import Away, Busy, Never, Outcome, Refused

CONNECT, READ = timedelta(seconds=3), timedelta(seconds=10)
HEAD: Final = timedelta(seconds=12)
"""How long the head of an answer may take, however it comes in pieces; each of them may take `READ`."""
MOST_CONNECTS: Final = timedelta(seconds=12)
"""How long all addresses of a host may take until one of them is connected."""
LIMITED_PAUSE: Final = 60.0
"""Seconds that an event waits whose endpoint answers with 429, without a time."""
_SHORTEST, _LONGEST = 1.0, 86400.0
"""Seconds that an endpoint may ask to wait."""
_AWAY: Final = frozenset({502, 503, 504})
_NOT_CONNECTED = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""Addresses that stand for one of IPv4, wherever that is (RFC 6052)."""
_INSIDE: Final = tuple(
    map(
        ipaddress.ip_network,
        ("64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96", "fec0::/10", "3fff::/20", "192.0.0.0/24"),
    )
)
"""Networks that lead nowhere outside, of which not every Python knows: translated, old or reserved addresses."""


class _Answer(HTTPResponse):
    """An answer whose head comes whole within `HEAD`, after any interim ones (1xx)."""

    def __init__(self, sock: socket.socket, *given: Any, **named: Any) -> None:  # noqa: ANN401  of `http.client`
        super().__init__(sock, *given, **named)
        self._socket = sock

    def begin(self) -> None:
        until = time.monotonic() + HEAD.total_seconds()
        end = threading.Timer(HEAD.total_seconds(), self._cut_off)
        end.daemon = True
        end.start()
        try:
            super().begin()
        finally:
            end.cancel()
        if time.monotonic() >= until:
            raise TimeoutError("the head was cut off")

    def _cut_off(self) -> None:
        with suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _read_status(self) -> tuple[str, int, str]:
        """Read the line of the answer itself: the library takes an interim one for it, but for 100."""
        found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
        while HTTPStatus.SWITCHING_PROTOCOLS < found[1] < HTTPStatus.OK:
            parse_headers(self.fp)
            found = super()._read_status()  # type: ignore[misc]
        return found


class _Plain(HTTPConnection):
    response_class = _Answer


class _Encrypted(HTTPSConnection):
    response_class = _Answer


def post(url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool) -> Outcome:
    """POST a body; its outcome is None where the answer is 2xx. Errors name scheme and host."""
    parts = urlsplit(url)
    host, place = parts.hostname or "", parts.netloc.rpartition("@")[2]
    sent = {"host": place, "user-agent": "hookonce", **headers}
    if parts.username:
        sent |= urllib3.make_headers(basic_auth=unquote(f"{parts.username}:{parts.password or ''}"))
    is_tls = parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    failed = ""
    try:
        addresses = _resolved(host, port, allow_private=allow_private, is_tls=is_tls)
        connect = min(CONNECT, MOST_CONNECTS / len(addresses)).total_seconds()
        for address in addresses:
            try:
                with _pool(address, port, host if is_tls else None) as pool:
                    answer = pool.urlopen(
                        "POST",
                        (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                        body=body,
                        headers=sent,
                        timeout=urllib3.Timeout(connect=connect, read=READ.total_seconds()),
                        redirect=False,
                        retries=False,
                        preload_content=False,
                    )
                    answer.close()
                    return _outcome(answer.status, answer.headers.get("retry-after"), parts.scheme, place)
            except _NOT_CONNECTED as error:
                failed = type(error).__name__
    except Refused as error:
        return error
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        failed = type(error).__name__
    return Away(f"{host} did not answer: {failed}")


def _outcome(status: int, retry_after: str | None, scheme: str, place: str) -> Outcome:
    said = f"{scheme}://{place} answered {status}; expected 2xx"
    if 200 <= status < 300:  # noqa: PLR2004  what success is
        return None
    if status == HTTPStatus.GONE:
        return Never(f"{said}: it wants no more events; take the forward out")
    wait = seconds_of(retry_after, time.time())
    wait = None if wait is None else min(max(wait, _SHORTEST), _LONGEST)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Busy(said, wait or LIMITED_PAUSE)
    if status in _AWAY:
        return Away(said, wait if status == HTTPStatus.SERVICE_UNAVAILABLE else None)
    return Refused(said)


def _pool(address: str, port: int, name: str | None) -> urllib3.HTTPConnectionPool:
    """Return what connects to one address, with TLS where a certificate is to have a name."""
    if name is None:
        pool = urllib3.HTTPConnectionPool(address, port)
        pool.ConnectionCls = _Plain
        return pool
    pool = urllib3.HTTPSConnectionPool(
        address,
        port,
        server_hostname=name,
        assert_hostname=name,
        cert_reqs="CERT_REQUIRED",
        ca_certs=os.environ.get("REQUESTS_CA_BUNDLE") or DEFAULT_CA_BUNDLE_PATH,
    )
    pool.ConnectionCls = _Encrypted
    return pool


def _resolved(host: str, port: int, *, allow_private: bool, is_tls: bool) -> list[str]:
    """Return the addresses of a host. Raises `Refused` where any of them is not for it."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found = list(dict.fromkeys(str(row[4][0]) for row in rows))
    for each in found:
        is_public = _is_public(each)
        if not is_public and not allow_private:
            raise Refused(f"{host} has a private address; set allow_private = true if that is meant")
        if is_public and not is_tls:
            raise Refused(f"{host} has a public address; write https://")
    return found


def _is_public(address: str) -> bool:
    known = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(known, "ipv4_mapped", None) or getattr(known, "sixtofour", None)
    if known in _NAT64:
        mapped = ipaddress.IPv4Address(int(known) & 0xFFFFFFFF)
    is_inside = known.is_multicast or any(known in each for each in _INSIDE)
    return known.is_global and not is_inside and (mapped is None or _is_public(str(mapped)))


def seconds_of(retry_after: str | None, now: float) -> float | None:
    """Return how long an answer asks to wait, in seconds; None where it does not say."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError):
        return None
