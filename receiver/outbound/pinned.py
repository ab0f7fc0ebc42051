"""A POST to an endpoint of the configuration: its name is resolved once, and the connection goes to that address.

So nobody who answers for a name can have it lead elsewhere between the check and the connection. The certificate is
checked for the name. No redirect is followed, no proxy is asked, and nothing of the answer's body is read.
"""

import ipaddress
import os
import socket
from collections.abc import Mapping
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import urllib3
from requests.utils import DEFAULT_CA_BUNDLE_PATH

CONNECT, READ = timedelta(seconds=3), timedelta(seconds=10)
MOST_CONNECTS = timedelta(seconds=12)
"""How long all addresses of a host may take until one of them is connected."""
_NOT_CONNECTED = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError)
_NAT64, _NAT64_INSIDE = ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48")
"""Networks of addresses that stand for one of IPv4, anywhere and within a network (RFC 6052, RFC 8215)."""


class NoAnswer(Exception):  # noqa: N818  a state of the world
    """The endpoint did not answer; the text names its host and no more."""


class NotAllowed(Exception):  # noqa: N818  a state of the configuration
    """The endpoint has an address that it may not have."""


class Answer(NamedTuple):
    """The status of an answer, and its header `Retry-After`."""

    status: int
    retry_after: str | None


def post(url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool) -> Answer:
    """POST a body. Raises `NoAnswer` and `NotAllowed`."""
    parts = urlsplit(url)
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    addresses = _resolved(host, port, allow_private=allow_private, is_tls=is_tls)
    connect = min(CONNECT, MOST_CONNECTS / len(addresses))
    timeout = urllib3.Timeout(connect=connect.total_seconds(), read=READ.total_seconds())
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = {"host": parts.netloc.rpartition("@")[2], "user-agent": "hookonce", **headers}
    if parts.username:
        sent |= urllib3.make_headers(basic_auth=unquote(f"{parts.username}:{parts.password or ''}"))
    failed = ""
    for address in addresses:
        try:
            with _pool(address, port, host if is_tls else None) as pool:
                answer = pool.urlopen(
                    "POST",
                    path,
                    body=body,
                    headers=sent,
                    timeout=timeout,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                )
                answer.close()
                return Answer(answer.status, answer.headers.get("retry-after"))
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            failed = type(error).__name__
            if not isinstance(error, _NOT_CONNECTED):
                break
    raise NoAnswer(f"{host} did not answer: {failed}")


def _pool(address: str, port: int, name: str | None) -> urllib3.HTTPConnectionPool:
    """Return what connects to one address, with TLS where a certificate is to have a name."""
    if name is None:
        return urllib3.HTTPConnectionPool(address, port)
    return urllib3.HTTPSConnectionPool(
        address,
        port,
        server_hostname=name,
        assert_hostname=name,
        cert_reqs="CERT_REQUIRED",
        ca_certs=os.environ.get("REQUESTS_CA_BUNDLE") or DEFAULT_CA_BUNDLE_PATH,
    )


def _resolved(host: str, port: int, *, allow_private: bool, is_tls: bool) -> list[str]:
    """Return the addresses of a host. Raises `NotAllowed` where any of them is not for it."""
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NoAnswer(f"{host} has no address: {type(error).__name__}") from None
    found = list(dict.fromkeys(str(row[4][0]) for row in rows))
    for each in found:
        is_public = _is_public(each)
        if not is_public and not allow_private:
            raise NotAllowed(f"{host} has a private address; set allow_private = true if that is meant")
        if is_public and not is_tls:
            raise NotAllowed(f"{host} has a public address; write https://")
    return found


def _is_public(address: str) -> bool:
    known = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(known, "ipv4_mapped", None) or getattr(known, "sixtofour", None)
    if known in _NAT64:
        mapped = ipaddress.IPv4Address(int(known) & 0xFFFFFFFF)
    is_inside = known.is_multicast or known in _NAT64_INSIDE
    return known.is_global and not is_inside and (mapped is None or mapped.is_global)


def seconds_of(retry_after: str | None, now: float) -> float | None:
    """Return how long an answer asks to wait, in seconds; None where it does not say."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - now)
    except (ValueError, TypeError):
        return None
