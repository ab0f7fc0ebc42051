"""Addresses at which an inbox may be asked: by https, or on this machine.

A token goes along with every request, so an address of plain http off this machine is none.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from hookonce.receiver.remote.errors import BadAddress


def address(url: str, *, is_plain_allowed: bool = False) -> str:
    """Return the URL of an inbox as it is compared and kept: lower case, no slash at its end.

    Raises: `BadAddress` for what is none, holds a password, or is neither https nor on this machine, unless plain http
    is allowed.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.username is not None or parts.password is not None:
        raise BadAddress(
            "the address of an inbox holds no user and no password; `hookonce login` asks for the token"
        )
    if (
        parts.scheme not in {"http", "https"}
        or not host
        or parts.query
        or parts.fragment
        or not url.isprintable()
    ):
        raise BadAddress(f"expected the address of an inbox, as https://inbox.example, not {url!r}")
    if parts.scheme == "http" and not is_plain_allowed and not is_loopback(host):
        raise BadAddress(
            f"{url!r} would send the token in the clear; expected https:// (http:// on this machine only)"
        )
    shown = f"[{host}]" if ":" in host else host
    where = shown if port in {None, {"http": 80, "https": 443}[parts.scheme]} else f"{shown}:{port}"
    return f"{parts.scheme}://{where}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Return whether a host, without brackets, is this machine: `localhost`, or an address of its own."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
