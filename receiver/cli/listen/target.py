"""The program that `hookonce listen` sends to: an address on this machine, unless one insists on another."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import click

from hookonce.receiver.remote.addresses import is_loopback

_PLACE = "{source}"


@dataclass(frozen=True, slots=True)
class Target:
    """The address that events go to; `{source}` in it stands for the name of an event's source."""

    address: str

    def url(self, source: str) -> str:
        """Return where events of a source go."""
        return self.address.replace(_PLACE, source)


def target(address: str, *, elsewhere: bool) -> Target:
    """Read an address. Raises: `click.BadParameter` unless it is on this machine, or may be `elsewhere`."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    is_plain = address.isprintable() and not set(address) & set(" \\") and parts.username is None
    if parts.scheme not in {"http", "https"} or not host or port == 0 or not is_plain:
        raise click.BadParameter(
            f"expected an address like http://localhost:3000/hook, not {address!r}", param_hint="--forward"
        )
    if not is_loopback(host) and not elsewhere:
        raise click.BadParameter(
            f"{host} is not this machine, and production's events would go there; --elsewhere says that it may be",
            param_hint="--forward",
        )
    return Target(address)
