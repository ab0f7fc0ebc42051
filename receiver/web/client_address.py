"""The client's address, where proxies stand before us: each writes whom it heard, at the end of `X-Forwarded-For`.

Anyone can send that header. So it is read from its end, and only as far as the proxies go that `[admin]
trusted_proxies` names; with none named, the client is whoever opened the connection.
"""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Return the address of the client; '' if it has none, as behind a unix socket whose proxy says nothing.

    `peer` opened the connection, `forwarded` is `X-Forwarded-For`. What is no address ends the walk: the last
    proxy that we know is then taken for the client.
    """
    found = _parse(peer)
    if not trusted:
        return str(found or "")
    for text in reversed(forwarded.split(",") if forwarded else []):
        if found is not None and not any(found in network for network in trusted):
            break
        nearer = _parse(text)
        if nearer is None:
            break
        found = nearer
    return str(found or "")


def is_proxy(peer: str, trusted: Sequence[Network]) -> bool:
    """Whether who opened the connection may tell of a client; behind a unix socket there is nobody but a proxy."""
    found = _parse(peer)
    return found is None or any(found in each for each in trusted)


def network(address: str) -> str:
    """Return the address, or of IPv6 the /64 that one client has; '' for what is no address."""
    found = _parse(address)
    if found is None:
        return ""
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))  # noqa: PLR2004


def _parse(text: str) -> Address | None:
    """Return an address, of IPv4 in IPv6 that of IPv4; with a port, as some proxies write it, or without."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
