"""Slows down guessing: a few attempts to sign in at once, then one every few seconds, per client address.

A client that shares its address with the attacker, behind a proxy that does not pass addresses on to the
socket, waits with it; who is signed in already does not notice.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta

AT_ONCE = 5
PAUSE = timedelta(seconds=5)
"""After the attempts at once, one more every so often."""
MOST_ADDRESSES = 4096
"""Remembered at once; the one not seen for longest goes."""


class Attempts:
    """Wrong attempts by address, in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> timedelta:
        """Say how long an address has to wait before it may try; zero if it may now."""
        used = self._level(_network(address))
        return PAUSE * max(0.0, used - AT_ONCE + 1)

    def failed(self, address: str) -> None:
        """Note a wrong attempt."""
        network = _network(address)
        self._used[network] = (self._level(network) + 1, self._clock())
        self._used.move_to_end(network)
        while len(self._used) > MOST_ADDRESSES:
            self._used.popitem(last=False)

    def _level(self, network: str) -> float:
        used, at = self._used.get(network, (0.0, 0.0))
        return max(0.0, used - (self._clock() - at) / PAUSE.total_seconds())


def _network(address: str) -> str:
    """Give the address, or of IPv6 the network that one client owns."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)  # noqa: PLR2004
