"""Keeps web pages of others away from an inbox on this machine.

A page in a browser here can send requests to loopback, and by DNS rebinding read the answers under a name of its own.
So what comes over loopback must be asked for under a name of loopback, the host of `public_url`, or one of `[admin]
hosts` (a proxy on the machine hands the console on under its name). Tunnels bring names of theirs to deliveries,
commands and probes, which take any; what a browser sends there from another site is refused instead.
"""

from collections.abc import Callable, Collection, Mapping

from hookonce.receiver.intake.other_sites import host_of, is_loopback, is_of_other_site
from hookonce.receiver.processes.waits import OnLoop, Waits
from hookonce.receiver.web.mounted import Endpoint
from hookonce.receiver.web.request import Request
from hookonce.receiver.web.response import Response, problem

OTHER_SITE, OTHER_HOST = "other_site", "unknown_host"
_FORBIDDEN, _MISDIRECTED = 403, 421


class OwnSite:
    """Decides on requests by where they come from; `names` are hosts besides those of loopback."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(name.lower() for name in names if name)

    def refusal(self, peer: str, headers: Mapping[str, str], *, any_host: bool) -> Response | None:
        """Return what a request is refused with; None for one that may go on."""
        if any_host:
            return problem(_FORBIDDEN, OTHER_SITE, close=True) if is_of_other_site(peer, headers) else None
        if "host" not in headers or not is_loopback(peer) or self._is_known(headers["host"]):
            return None
        return problem(_MISDIRECTED, OTHER_HOST, close=True)

    def _is_known(self, host: str) -> bool:
        name = host_of(f"//{host}")
        return name in self._names or name == "localhost" or name.endswith(".localhost") or is_loopback(name)


class GuardedEndpoint:
    """An endpoint of the front door, asked by what may ask it."""

    def __init__(self, endpoint: Endpoint, site: OwnSite, *, any_host: bool = True) -> None:
        self._endpoint = endpoint
        self._begin: Callable[..., bool] | None = getattr(endpoint, "begin", None)
        self._site = site
        self._any_host = any_host

    async def answer(self, request: Request, waits: Waits) -> Response:
        """Answer a request. Raises nothing."""
        refusal = self._site.refusal(request.peer, request.headers, any_host=self._any_host)
        return refusal or await self._endpoint.answer(request, waits)

    def begin(self, request: Request, body: bytes, waits: OnLoop, land: Callable[[Response], None]) -> bool:
        """Begin to answer a request, where the endpoint can (`connection.Begin`)."""
        if self._begin is None or self._site.refusal(request.peer, request.headers, any_host=self._any_host):
            return False
        return self._begin(request, body, waits, land)
