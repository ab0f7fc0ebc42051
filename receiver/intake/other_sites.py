"""Requests of a browser on this machine for a page of another site: no sender's delivery, and no client's command."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

_OWN = frozenset({"same-origin", "none"})


def is_of_other_site(peer: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser sends it over loopback for a page of another site; names of headers are in lower case."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if (origin is None and site is None) or not is_loopback(peer):
        return False
    if site is not None and site not in _OWN:
        return True
    return origin is not None and origin.lower().partition("://")[2] != headers.get("host", "").lower()


def host_of(url: str) -> str:
    """Return the host of a URL in lower case; '' where there is none, or it can't be read."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    """Whether an address is one of the machine's own, which nobody else reaches."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
