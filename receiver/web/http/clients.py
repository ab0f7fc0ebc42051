"""Clients by address: connections cost nothing to make anew, addresses do.

A client is an IPv4 address, or a /64 of IPv6, which is what one customer of a network has; behind a declared proxy it
is whom the proxy names (`receiver.web.client_address`). What its connections cost is charged to it as well. That
counts only while there are others: a client that is alone may use the whole process. A client that brings new events
has credit, which pays first and is bounded; so senders behind a proxy that nobody declared are not charged for the
strangers behind the same proxy, unless these are many times as many.
"""

from collections import OrderedDict
from collections.abc import Sequence
from time import monotonic

from hookonce.receiver.web.client_address import Network, client_address, is_proxy, network
from hookonce.receiver.web.http import limits


class Client:
    """The time that a client has used: `debt` as far as it is not forgiven, `credit` for events; both in seconds."""

    __slots__ = ("_paid", "credit", "debt")

    def __init__(self) -> None:
        self.debt = self.credit = 0.0
        self._paid = monotonic()

    def charge(self, seconds: float) -> None:
        """Take what something cost from the credit, and the rest on the debt."""
        now = monotonic()
        debt = self.debt - (now - self._paid) * limits.CLIENT_ALLOWANCE_A_SECOND
        self._paid = now
        paid = min(self.credit, seconds)
        self.credit -= paid
        self.debt = max(0.0, debt) + seconds - paid

    def earn(self) -> None:
        """Give credit for a delivery that was verified and new."""
        self.credit = min(self.credit + limits.EVENT_CREDIT, limits.MOST_CREDIT)

    @property
    def is_small(self) -> bool:
        """Whether its connections may go on by their own accounts, although other clients are there."""
        return self.credit > 0 or self.debt < limits.CLIENT_ALLOWANCE


class Clients:
    """The clients of a process, `size` at most: the one not met for longest is forgotten, and with it its debt.

    `proxies` may say whose request they bring.
    """

    def __init__(self, proxies: Sequence[Network] = (), size: int = limits.CLIENTS) -> None:
        self._proxies = proxies
        self._size = size
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._latest: Client | None = None
        self._others_until = 0.0

    def is_proxy(self, peer: str) -> bool:
        """Whether the address that opened a connection may name others."""
        return bool(self._proxies) and is_proxy(peer, self._proxies)

    def at(self, peer: str, forwarded: str = "") -> Client:
        """Return the client at an address, or whom it names in `X-Forwarded-For`; all without an address are one."""
        name = network(client_address(peer, forwarded, self._proxies))
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = Client()
            if len(self._clients) > self._size:
                self._clients.popitem(last=False)
        else:
            self._clients.move_to_end(name)
        return client

    def note(self, client: Client) -> None:
        """Note that a client wants something."""
        if client is not self._latest:
            if self._latest is not None:
                self._others_until = monotonic() + limits.RECENT
            self._latest = client

    @property
    def are_many(self) -> bool:
        """Whether more than one has wanted something of late."""
        return monotonic() < self._others_until
